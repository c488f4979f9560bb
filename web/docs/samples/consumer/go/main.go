// Follows the event feed and records each event exactly once, even if it is killed at any moment:
//
//	BASE_URL=... CLIENT_ID=... CLIENT_SECRET=... JOURNAL=journal.jsonl go run main.go
//
// Each line of the journal holds the events of one page and the cursor after them, so that both
// are written together or not at all. With a database, do the same in one transaction.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

// page is the data of a feed response, and a line of the journal.
type page struct {
	Events     []json.RawMessage `json:"events"`
	NextCursor string            `json:"next_cursor"`
}

// client has a timeout longer than the feed holds a response back. It follows no redirect: the
// feed never redirects, and the secret must not go to another host.
var client = &http.Client{
	Timeout:       60 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func main() {
	journal, cursor, err := open(os.Getenv("JOURNAL"))
	if err != nil {
		log.Fatal(err)
	}
	booked := time.Now()
	for pause := time.Second; ; {
		next, err := fetch(cursor)
		switch {
		case errors.Is(err, errGiveUp):
			log.Fatal(err)
		case err != nil:
			log.Printf("trying again in %s: %v", pause, err)
			time.Sleep(pause)
			pause = min(2*pause, 30*time.Second)
			continue
		}
		pause = time.Second
		// Without events for you, the cursor still moves past those of other clients. Store it once an
		// hour, before retention removes the events after the stored one.
		if len(next.Events) > 0 || time.Since(booked) > time.Hour {
			if err := book(journal, next); err != nil {
				log.Fatal(err)
			}
			booked = time.Now()
		}
		cursor = next.NextCursor
	}
}

// open reads the cursor of the last complete line and removes any partial line after it.
func open(path string) (*os.File, string, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, "", err
	}
	written, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	whole := written[:bytes.LastIndexByte(written, '\n')+1]
	if err := file.Truncate(int64(len(whole))); err != nil || len(whole) == 0 {
		return file, "", err
	}
	var last page
	line := whole[bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1:]
	err = json.Unmarshal(line, &last)
	return file, last.NextCursor, err
}

// book writes the events and the cursor in one line. Replace it with your own processing.
func book(journal *os.File, next page) error {
	line, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if _, err := journal.Write(append(line, '\n')); err != nil {
		return err
	}
	return journal.Sync()
}

// errGiveUp marks a response that a retry would not change.
var errGiveUp = errors.New("the feed refuses")

// fetch requests the page after a cursor, and waits up to 30 seconds for events.
func fetch(cursor string) (page, error) {
	query := url.Values{"wait": {"30"}, "limit": {"100"}}
	if cursor != "" {
		query.Set("after", cursor)
	}
	request, err := http.NewRequest(http.MethodGet,
		os.Getenv("BASE_URL")+"/v2/events?"+query.Encode(), http.NoBody)
	if err != nil {
		return page{}, err
	}
	request.Header.Set("x-service-client-id", os.Getenv("CLIENT_ID"))
	request.Header.Set("x-service-client-secret", os.Getenv("CLIENT_SECRET"))
	response, err := client.Do(request)
	if err != nil {
		return page{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Result struct {
			Data  page            `json:"data"`
			Error json.RawMessage `json:"error"`
		} `json:"result"`
	}
	err = json.NewDecoder(response.Body).Decode(&answer)
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return page{}, fmt.Errorf("the feed answers %d", status)
	case status != http.StatusOK: // 410: the cursor is too old; details has one that works
		return page{}, fmt.Errorf("%w with %d: %s", errGiveUp, status, answer.Result.Error)
	}
	// A 200 from something in between, such as a gateway, has no cursor to continue from.
	if next := answer.Result.Data; err != nil || next.Events != nil && next.NextCursor != "" {
		return next, err
	}
	return page{}, errors.New("the answer is no page of the feed")
}
