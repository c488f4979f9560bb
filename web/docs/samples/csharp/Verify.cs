using System;
using System.IO;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

/// Checks a webhook signature. Reads the body from standard input.
/// Verify SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
public static class Verify
{
    /// Reports whether one of the signatures was made with secret over the raw body.
    /// Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
    /// secret is being rotated.
    public static bool Genuine(string secret, byte[] body, params string[] signatures)
    {
        using (var mac = new HMACSHA256(Encoding.UTF8.GetBytes(secret)))
        {
            var hex = BitConverter.ToString(mac.ComputeHash(body)).Replace("-", "").ToLowerInvariant();
            var expected = Encoding.ASCII.GetBytes(hex);
            return signatures.Any(signature =>
                FixedTimeEquals(expected, Encoding.UTF8.GetBytes(signature ?? "")));
        }
    }

    /// The same as CryptographicOperations.FixedTimeEquals of .NET 5 and later,
    /// for older versions.
    private static bool FixedTimeEquals(byte[] left, byte[] right)
    {
        var difference = left.Length ^ right.Length;
        for (var i = 0; i < left.Length && i < right.Length; i++)
        {
            difference |= left[i] ^ right[i];
        }
        return difference == 0;
    }

    // In ASP.NET Core, read the raw body before model binding:
    //   using var memory = new MemoryStream();
    //   await Request.Body.CopyToAsync(memory);
    //   Genuine(secret, memory.ToArray(), Request.Headers["x-hmac-signature"],
    //       Request.Headers["x-hmac-signature-previous"]);

    public static int Main(string[] args)
    {
        using (var memory = new MemoryStream())
        {
            Console.OpenStandardInput().CopyTo(memory);
            var ok = Genuine(args[0], memory.ToArray(), args.Skip(1).ToArray());
            Console.WriteLine(ok ? "genuine" : "forged");
            return ok ? 0 : 1;
        }
    }
}
