// Checks a webhook signature. Reads the body from standard input.
//   node verify.mjs SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

/**
 * Reports whether one of the signatures was made with secret over the raw body.
 * Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
 * secret is being rotated.
 */
export function genuine(secret, body, ...signatures) {
  const expected = Buffer.from(createHmac("sha256", secret).update(body).digest("hex"));
  return signatures.some((signature) => {
    const given = Buffer.from(signature ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

// In Express, keep the raw body away from the JSON parser:
//   app.post("/webhooks", express.raw({ type: "*/*" }), (req, res) => {
//     const ok = genuine(secret, req.body, req.get("x-hmac-signature"),
//       req.get("x-hmac-signature-previous"));

const [secret, ...signatures] = process.argv.slice(2);
const ok = genuine(secret, readFileSync(0), ...signatures);
console.log(ok ? "genuine" : "forged");
process.exit(ok ? 0 : 1);
