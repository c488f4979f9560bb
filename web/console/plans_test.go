package console_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"drawbridge/internal/lists"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/seed"
)

// largeTable matches the tables that grow with use, and their partitions.
var largeTable = regexp.MustCompile(`^(deliveries|events|attempts|api_requests|applications|` +
	`emails|loans|loan_stages|disbursements|audit_log|attention_items)(_y|$)`)

// readsLarge matches queries of them.
var readsLarge = regexp.MustCompile(`(?s)^\s*(SELECT|WITH).*\b(FROM|JOIN)\s+(deliveries|events|` +
	`attempts|api_requests|applications|emails|loans|audit_log|attention_items)\b`)

// TestListsReadByIndex opens each list of the console with each of its filters, alone and
// in pairs, and checks the query plans: they must use an index, and must not read many more
// rows than match. A new filter without an index reads the whole table if its value is
// rare.
func TestListsReadByIndex(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	_, err := seed.Fill(t.Context(), r.DB, seed.Plan{
		Deliveries: 16_000, Attempts: 24_000, Partners: 72,
	})
	r.must(err)
	const admin = "ada@lender.example"
	r.addUser(admin, operator.RoleAdmin)
	planner := newPlanner(r)
	visitor, err := lists.SignIn(t.Context(), r.URL, admin, password)
	r.must(err)
	pages, err := lists.Pages(t.Context(), visitor.Uncompressed(), r.DB.Now())
	r.must(err)
	for _, page := range pages {
		addresses, err := page.Addresses(t.Context(), visitor, lists.Plan{Pairs: 1})
		r.must(err)
		planner.recorder.Take()
		for _, address := range addresses {
			_, err := visitor.Get(t.Context(), address.Path)
			if errors.Is(err, lists.ErrRefused) && address.Filters > 1 {
				continue // the two are mutually exclusive
			}
			r.must(err)
			planner.check(address.Path)
		}
	}
}

// planner checks the plans of the queries that a console sends.
type planner struct {
	*harness
	recorder *pgtest.Recorder
	conn     *sql.Conn
	seen     map[string]bool
	// sizes are the row counts of the large tables.
	sizes map[string]float64
}

func newPlanner(r *harness) *planner {
	r.Helper()
	conn, err := r.DB.Conn(r.Context())
	r.must(err)
	r.Cleanup(func() { r.must(conn.Close()) })
	// Tables of this size are scanned sequentially where large ones would not be: the question
	// is whether they have to be.
	_, err = conn.ExecContext(r.Context(), `SET enable_seqscan = off;
		SET jit = off; SET max_parallel_workers_per_gather = 0`)
	r.must(err)
	sizes := map[string]float64{}
	for _, table := range []string{"deliveries", "events", "attempts", "api_requests"} {
		var rows float64
		r.must(conn.QueryRowContext(r.Context(), `SELECT count(*) FROM `+table).Scan(&rows))
		sizes[table] = rows
	}
	return &planner{
		harness: r, recorder: pgtest.Record(r.T, r.DB), conn: conn, seen: map[string]bool{},
		sizes: sizes,
	}
}

// check checks the queries that a page has sent since the last check.
func (p *planner) check(address string) {
	p.Helper()
	for _, query := range p.recorder.Take() {
		key := query.Text + fmt.Sprint(query.Args)
		if p.seen[key] || !readsLarge.MatchString(query.Text) {
			continue
		}
		p.seen[key] = true
		plan, err := p.explain(p.Context(), query)
		p.must(err)
		if problem := plan.problem(p.sizes); problem != "" {
			p.Errorf("%s: %s\n%s\n%v\n%s", address, problem, query.Text, query.Args, plan.outline(0))
		}
	}
}

func (p *planner) explain(ctx context.Context, query pgtest.Query) (planNode, error) {
	var text []byte
	err := p.conn.QueryRowContext(ctx,
		`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+query.Text, query.Args...).Scan(&text)
	if err != nil {
		return planNode{}, err
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		return planNode{}, fmt.Errorf("reading a plan: %w", err)
	}
	return plans[0].Plan, nil
}

// planNode is a step of a plan with its statistics. Rows are per loop.
type planNode struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Recheck  float64 `json:"Rows Removed by Index Recheck"`
	Plans    []planNode
}

const (
	// fewRows of a table may be read regardless of the matches, and a part of a larger one:
	// the largest merchant has a sixth of all deliveries.
	fewRows, partOfTable = 320, 8
	// perMatch is how many rows may be read per match.
	perMatch = 16
)

// problem says what is wrong with a plan for tables of the given sizes, empty if nothing
// is.
func (n planNode) problem(sizes map[string]float64) string {
	var matched float64
	var whole string
	walked := map[string]float64{} // by table, for what is joined is read once more
	n.each(func(node planNode) {
		switch {
		case node.Type == "Limit":
			matched = max(matched, node.Rows*node.Loops)
		case node.Type == "Seq Scan" && largeTable.MatchString(node.Relation):
			whole = node.Relation
		}
		if table := largeTable.FindStringSubmatch(node.Relation); table != nil {
			walked[table[1]] += (node.Rows + node.Filtered + node.Recheck) * node.Loops
		}
	})
	if whole != "" {
		return "no index leads into " + whole
	}
	matched = max(matched, n.Rows)
	for table, rows := range walked {
		if rows > max(fewRows, sizes[table]/partOfTable)+perMatch*matched {
			return fmt.Sprintf("read %.0f rows of %s for %.0f that match", rows, table, matched)
		}
	}
	return ""
}

func (n planNode) each(use func(planNode)) {
	use(n)
	for _, child := range n.Plans {
		child.each(use)
	}
}

// outline formats a plan for readers.
func (n planNode) outline(depth int) string {
	text := fmt.Sprintf("%s%s %s %s: %.0f rows, %.0f left out, %.0f times\n",
		strings.Repeat("  ", depth), n.Type, n.Relation, n.Index, n.Rows, n.Filtered, n.Loops)
	if n.Loops == 0 {
		return ""
	}
	for _, child := range n.Plans {
		text += child.outline(depth + 1)
	}
	return text
}
