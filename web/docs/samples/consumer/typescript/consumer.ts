// Follows the event feed and records each event exactly once, even if it is killed at any moment:
//
//   npm install typescript @types/node
//   npx tsc --strict --module nodenext --types node consumer.ts
//   BASE_URL=... CLIENT_ID=... CLIENT_SECRET=... JOURNAL=journal.jsonl node consumer.js
//
// Each line of the journal holds the events of one page and the cursor after them, so that both
// are written together or not at all. With a database, do the same in one transaction.
import { closeSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

interface Page {
  events: unknown[];
  next_cursor: string;
}

/** Opens the journal, without any partial last line, and reads the cursor of its last line. */
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

/** Writes the events and the cursor in one line. Replace it with your own processing. */
function book(journal: number, { events, next_cursor }: Page): void {
  writeSync(journal, JSON.stringify({ events, next_cursor }) + "\n");
  fsyncSync(journal);
}

/** A response that a retry would not change. */
class Refused extends Error {}

/** Requests the page after a cursor, and waits up to 30 seconds for events. */
async function fetchPage(cursor: string): Promise<Page> {
  const query = new URLSearchParams({ wait: "30", limit: "100" });
  if (cursor) query.set("after", cursor);
  const answer = await fetch(`${process.env.BASE_URL}/v2/events?${query}`, {
    headers: {
      "x-service-client-id": process.env.CLIENT_ID ?? "",
      "x-service-client-secret": process.env.CLIENT_SECRET ?? "",
    },
    redirect: "manual", // the feed never redirects, and the secret must not go to another host
    signal: AbortSignal.timeout(60_000),
  });
  if (answer.status === 429 || answer.status >= 500) throw new Error(`the feed answers ${answer.status}`);
  // 410: the cursor is too old; details has one that works.
  if (!answer.ok) throw new Refused(`the feed refuses with ${answer.status}: ${await answer.text()}`);
  const page = ((await answer.json()) as { result?: { data?: Page } } | null)?.result?.data;
  // A 200 from something in between, such as a gateway, has no cursor to continue from.
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
    // Without events for you, the cursor still moves past those of other clients. Store it once an
    // hour, before retention removes the events after the stored one.
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
