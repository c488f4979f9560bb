// Checks webhooks against their published schemas with ajv, and their signatures with the Standard
// Webhooks library:  node webhooks.mjs WEBHOOKS.json BASE64_SECRET SCHEMA_FOLDER
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { Webhook } from "standardwebhooks";

const [file, secret, folder] = process.argv.slice(2);
const ajv = new Ajv({ strict: true, allErrors: true });
addFormats(ajv);
const webhook = new Webhook(secret);
const validators = new Map();

const webhooks = JSON.parse(readFileSync(file, "utf8"));
for (const { headers, body } of webhooks) {
	const kind = headers["x-drawbridge-event"];
	if (!validators.has(kind)) {
		validators.set(kind, ajv.compile(JSON.parse(readFileSync(join(folder, `${kind}.json`), "utf8"))));
	}
	const validate = validators.get(kind);
	const more = { ...JSON.parse(body), added_later: true };
	for (const event of [JSON.parse(body), more]) {
		if (!validate(event)) {
			throw new Error(`${kind}: ${ajv.errorsText(validate.errors)} in ${body}`);
		}
	}
	webhook.verify(body, headers);
}
console.log(`${webhooks.length} webhooks are as published`);
