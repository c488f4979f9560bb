# frozen_string_literal: true

# Checks a webhook signature. Reads the body from standard input.
#   ruby verify.rb SECRET SIGNATURE [PREVIOUS_SIGNATURE] < body
require "openssl"

# Reports whether one of the signatures was made with secret over the raw body.
# Pass x-hmac-signature and x-hmac-signature-previous, which is present while a
# secret is being rotated.
def genuine?(secret, body, *signatures)
  expected = OpenSSL::HMAC.hexdigest("SHA256", secret, body)
  signatures.compact.any? do |signature|
    signature.bytesize == expected.bytesize &&
      OpenSSL.fixed_length_secure_compare(signature, expected)
  end
end

# In Rails the raw body is request.raw_post, in Rack and Sinatra
# request.body.read:
#   genuine?(secret, request.raw_post, request.headers["x-hmac-signature"],
#            request.headers["x-hmac-signature-previous"])

ok = genuine?(ARGV[0], $stdin.binmode.read, *ARGV[1..])
puts ok ? "genuine" : "forged"
exit ok
