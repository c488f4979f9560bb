<?php
// Checks a webhook signature. Reads the body from standard input.
//   php verify.php SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
declare(strict_types=1);

/**
 * Reports whether one of the signatures was made with $secret over the raw body.
 * Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
 * secret is being rotated.
 */
function genuine(string $secret, string $body, ?string ...$signatures): bool
{
    $expected = hash_hmac('sha256', $body, $secret);
    foreach ($signatures as $signature) {
        if (hash_equals($expected, $signature ?? '')) { // constant time
            return true;
        }
    }
    return false;
}

// In plain PHP the raw body is file_get_contents('php://input'), in Laravel
// and Symfony $request->getContent():
//   genuine($secret, $body, $_SERVER['HTTP_X_HMAC_SIGNATURE'] ?? null,
//       $_SERVER['HTTP_X_HMAC_SIGNATURE_PREVIOUS'] ?? null);

$ok = genuine($argv[1], stream_get_contents(STDIN), ...array_slice($argv, 2));
echo $ok ? "genuine\n" : "forged\n";
exit($ok ? 0 : 1);
