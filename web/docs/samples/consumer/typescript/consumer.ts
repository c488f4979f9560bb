// Follows the feed of events and books each of them once, whatever kills it:
//
//   npm install typescript @types/node
//   npx tsc --strict --module nodenext --types node consumer.ts
//   BASE_URL=... CLIENT_ID=... CLIENT_SECRET=... JOURNAL=journal.jsonl node consumer.js
//
// Each line of the journal holds the events of one page and the cursor after them, so that both
// are written at once or not at all. With a database, do the same in one transaction.
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

interface Page {
  events: unknown[];
  next_cursor: string;
}

/** Opens the journal with the cursor of its last whole line, without what a crash left. */
function openJournal(path: string): { journal: number; cursor: string } {
  closeSync(openSync(path, "a"));
  const written = readFileSync(path);
  const whole = written.subarray(0, written.lastIndexOf("\n") + 1);
  const journal = openSync(path, "r+");
  ftruncateSync(journal, whole.length);
  closeSync(journal);
  const last = whole.toString().trimEnd().split("\n").at(-1);
  const cursor = last ? (JSON.parse(last) as Page).next_cursor : "";
  return { journal: openSync(path, "a"), cursor };
}

/** Writes events and cursor in one line. This is the place for what you do with them. */
function book(journal: number, { events, next_cursor }: Page): void {
  writeSync(journal, JSON.stringify({ events, next_cursor }) + "\n");
  fsyncSync(journal);
}

/** An answer that no repetition changes. */
class Refused extends Error {}

/** Asks for what comes after a cursor, and waits for it up to 30 seconds. */
async function fetchPage(cursor: string): Promise<Page> {
  const query = new URLSearchParams({ wait: "30", limit: "100" });
  if (cursor) query.set("after", cursor);
  const answer = await fetch(`${process.env.BASE_URL}/v2/events?${query}`, {
    headers: {
      "x-service-client-id": process.env.CLIENT_ID ?? "",
      "x-service-client-secret": process.env.CLIENT_SECRET ?? "",
    },
    redirect: "manual", // the feed never redirects, and the secret goes to nobody else
    signal: AbortSignal.timeout(60_000),
  });
  if (answer.status === 429 || answer.status >= 500) throw new Error(`the feed answers ${answer.status}`);
  // 410: the cursor is too old; the message has one that works.
  if (!answer.ok) throw new Refused(`the feed refuses with ${answer.status}: ${await answer.text()}`);
  const page = ((await answer.json()) as { result?: { data?: Page } } | null)?.result?.data;
  // Whoever else answers 200 on the way, such as a gateway, gives no place to go on from.
  if (!page?.events || !page.next_cursor) throw new Error("the answer is no page of the feed");
  return page;
}

async function main(): Promise<void> {
  let { journal, cursor } = openJournal(process.env.JOURNAL ?? "journal.jsonl");
  let booked = Date.now();
  for (let pause = 1; ; ) {
    let page: Page;
    try {
      page = await fetchPage(cursor);
    } catch (problem) {
      if (problem instanceof Refused) throw problem;
      console.error(`trying again in ${pause} s: ${problem}`);
      await new Promise((resume) => setTimeout(resume, pause * 1000));
      pause = Math.min(2 * pause, 30);
      continue;
    }
    pause = 1;
    // Without events, the cursor moves past those of others: keep it now and then, before what
    // lies behind it is removed.
    if (page.events.length > 0 || Date.now() - booked > 3_600_000) {
      book(journal, page);
      booked = Date.now();
    }
    cursor = page.next_cursor;
  }
}

main().catch((problem: Error) => {
  console.error(problem.message);
  process.exit(1);
});
