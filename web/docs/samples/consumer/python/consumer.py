"""Follows the event feed and records each event exactly once, even if it is killed at any moment:

    BASE_URL=... CLIENT_ID=... CLIENT_SECRET=... JOURNAL=journal.jsonl python3 consumer.py

Each line of the journal holds the events of one page and the cursor after them, so that both are
written together or not at all. With a database, do the same in one transaction.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def open_journal(path):
    """Returns the journal, without any partial last line, and the cursor of its last line."""
    journal = open(path, "a+b")
    journal.seek(0)
    written = journal.read()
    whole = written[: written.rfind(b"\n") + 1]
    journal.truncate(len(whole))
    lines = whole.splitlines()
    return journal, json.loads(lines[-1])["next_cursor"] if lines else None


def book(journal, page):
    """Writes the events and the cursor in one line. Replace it with your own processing."""
    line = {"events": page["events"], "next_cursor": page["next_cursor"]}
    journal.write(json.dumps(line).encode() + b"\n")
    journal.flush()
    os.fsync(journal.fileno())


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The feed never redirects, and the secret must not go to another host."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def fetch(cursor):
    """Requests the page after a cursor, and waits up to 30 seconds for events."""
    query = {"wait": 30, "limit": 100} | ({"after": cursor} if cursor else {})
    request = urllib.request.Request(
        os.environ["BASE_URL"] + "/v2/events?" + urllib.parse.urlencode(query),
        headers={
            "x-service-client-id": os.environ["CLIENT_ID"],
            "x-service-client-secret": os.environ["CLIENT_SECRET"],
        },
    )
    with opener.open(request, timeout=60) as answer:
        content = json.load(answer)
    # A 200 from something in between, such as a gateway, has no cursor to continue from.
    try:
        page = content["result"]["data"]
        if page["events"] is not None and page["next_cursor"]:
            return page
    except (LookupError, TypeError):
        pass
    raise ValueError("the answer is no page of the feed")


def main():
    journal, cursor = open_journal(os.environ["JOURNAL"])
    pause, booked = 1, time.monotonic()
    while True:
        try:
            page = fetch(cursor)
        except urllib.error.HTTPError as refused:
            # 410: the cursor is too old; details has one that works.
            if refused.code != 429 and refused.code < 500:
                sys.exit(f"the feed refuses with {refused.code}: {refused.read().decode()}")
            problem = refused
        except (OSError, ValueError, http.client.HTTPException) as broken:
            problem = broken
        else:
            pause = 1
            # Without events for you, the cursor still moves past those of other clients. Store it
            # once an hour, before retention removes the events after the stored one.
            if page["events"] or time.monotonic() - booked > 3600:
                book(journal, page)
                booked = time.monotonic()
            cursor = page["next_cursor"]
            continue
        print(f"trying again in {pause} s: {problem}", file=sys.stderr)
        time.sleep(pause)
        pause = min(2 * pause, 30)


main()
