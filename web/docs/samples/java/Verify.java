import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Checks a webhook signature. Reads the body from standard input.
 * java Verify.java SECRET SIGNATURE [PREVIOUS_SIGNATURE] &lt; body
 */
public final class Verify {

    /**
     * Reports whether one of the signatures was made with secret over the raw body.
     * Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
     * secret is being rotated.
     */
    static boolean genuine(String secret, byte[] body, String... signatures)
            throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
        byte[] expected = HexFormat.of().formatHex(mac.doFinal(body))
                .getBytes(StandardCharsets.US_ASCII);
        boolean found = false;
        for (String signature : signatures) {
            byte[] given = (signature == null ? "" : signature).getBytes(StandardCharsets.UTF_8);
            found |= MessageDigest.isEqual(expected, given); // constant time
        }
        return found;
    }

    // In Spring, take the raw body as bytes:
    //   @PostMapping("/webhooks") void receive(@RequestBody byte[] body,
    //       @RequestHeader("x-hmac-signature") String signature,
    //       @RequestHeader(name = "x-hmac-signature-previous", required = false) String previous)

    public static void main(String[] args) throws Exception {
        boolean ok = genuine(args[0], System.in.readAllBytes(),
                Arrays.copyOfRange(args, 1, args.length));
        System.out.println(ok ? "genuine" : "forged");
        System.exit(ok ? 0 : 1);
    }
}
