package contract

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
)

func TestReal(t *testing.T) {
	raw, _ := os.ReadFile("/tmp/docsdev/run/demo.json")
	var d struct {
		BaseURL  string `json:"base_url"`
		Partners []struct {
			Clients []struct {
				ClientID string `json:"client_id"`
				CSecret  string `json:"client_secret"`
			}
		}
		Products []struct {
			UID  string `json:"product_uid"`
			Code string
		}
	}
	json.Unmarshal(raw, &d)
	c, err := Load(d.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	w := &Walker{BaseURL: d.BaseURL, ClientID: d.Partners[0].Clients[0].ClientID, Secret: d.Partners[0].Clients[0].CSecret,
		HTTP: &http.Client{Transport: c.Transport(t, http.DefaultTransport)}}
	for _, p := range d.Products {
		if p.Code == "ROOF-3" {
			w.ProductUID = p.UID
		}
	}
	ex, _ := c.Examples()
	for _, e := range ex {
		ids, err := w.Make(t.Context(), e.Needs)
		if err != nil {
			t.Error(err)
			continue
		}
		res, err := w.Send(t.Context(), e.Replace(ids))
		if err != nil {
			t.Error(err)
			continue
		}
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != e.Expect {
			t.Errorf("%s %s: %d %s", e.Operation, e.Name, res.StatusCode, b)
		} else {
			t.Logf("%s %s: %d %.300s", e.Operation, e.Name, res.StatusCode, b)
		}
	}
}
