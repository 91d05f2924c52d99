// A key and the certificate that it signed for itself, of localhost and 127.0.0.1, until 2126: for
// tests and nothing else. Made by: openssl req -x509 -newkey ec -pkeyopt
// ec_paramgen_curve:prime256v1 -nodes
// -days 36500 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1
#ifndef QUANTD_TESTS_CLIENT_CERTIFICATE_H_
#define QUANTD_TESTS_CLIENT_CERTIFICATE_H_

namespace quantd::client {

inline constexpr char kTestKey[] = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgYnwV6xrxwbITCemR
kp8Ff5HdK7ATSkx13efXwvig+rKhRANCAAR6YudwnYqk1+Bw+xHAwYkHmLmFkACm
dE2Sq9U+OkLU3g/A/uWZPKnninyn03T58d1Q6Bc2HDfQn1vhPBh69DxU
-----END PRIVATE KEY-----
)";
inline constexpr char kTestCertificate[] = R"(-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUQPYBMu9hsJnpwm5aYAVeMfrHAnUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjE3MDkxOFoYDzIxMjYxMDI5
MTcwOTE4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR6YudwnYqk1+Bw+xHAwYkHmLmFkACmdE2Sq9U+OkLU3g/A/uWZPKnn
inyn03T58d1Q6Bc2HDfQn1vhPBh69DxUo28wbTAdBgNVHQ4EFgQUyQ6RlugLIdvj
8B4qqh8G37qlf+IwHwYDVR0jBBgwFoAUyQ6RlugLIdvj8B4qqh8G37qlf+IwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIhAJDF7Y/nTiuPdW79udRKvhp1iIW8rSr9ofOvitbiFjnKAiAC
/iJMvM6LhIMwak/3BQbxXo7QrvNj6Ilie00S/2aGWA==
-----END CERTIFICATE-----
)";

}  // namespace quantd::client

#endif  // QUANTD_TESTS_CLIENT_CERTIFICATE_H_
