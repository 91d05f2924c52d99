package quantd.client;

import io.grpc.ChannelCredentials;
import io.grpc.InsecureChannelCredentials;
import io.grpc.TlsChannelCredentials;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Options of {@link Quantd#connect}. Each one that is not set comes from the environment variable named with it, or else has the
 * default named with it. Not thread safe.
 */
public final class ConnectOptions {
  private String tlsCa;
  private String tlsCert;
  private String tlsKey;
  private String authTokenFile;
  private String serviceConfig;
  private ChannelCredentials credentials;
  private boolean allowInsecureToken;
  private int maxReceiveBytes = Integer.MAX_VALUE;

  /** PEM file of the authorities that may vouch for the server. QUANTD_TLS_CA. */
  public ConnectOptions tlsCa(Path file) {
    tlsCa = file.toString();
    return this;
  }

  /** PEM files of this client's certificate and its key, if the server requires one. QUANTD_TLS_CERT and QUANTD_TLS_KEY. */
  public ConnectOptions tlsCert(Path cert, Path key) {
    tlsCert = cert.toString();
    tlsKey = key.toString();
    return this;
  }

  /**
   * File with the token that the server requires (its --auth_token_file): the first line that is neither blank nor a comment (#), read
   * again when it may have changed. Without TLS it is sent over loopback and Unix sockets only. QUANTD_AUTH_TOKEN_FILE.
   */
  public ConnectOptions authTokenFile(Path file) {
    authTokenFile = file.toString();
    return this;
  }

  /** Send the token over a network even without TLS, for example if a proxy adds TLS. */
  public ConnectOptions allowInsecureToken() {
    allowInsecureToken = true;
    return this;
  }

  /** gRPC's own credentials in place of the files for TLS: {@code TlsChannelCredentials.create()} takes the system's authorities. */
  public ConnectOptions credentials(ChannelCredentials value) {
    credentials = value;
    return this;
  }

  /** Service config, as JSON, in place of deploy/service_config.json: round robin, five attempts of calls that fail with UNAVAILABLE. */
  public ConnectOptions serviceConfig(String json) {
    serviceConfig = json;
    return this;
  }

  /** The largest answer in bytes. By default, as large as the server sends. */
  public ConnectOptions maxReceiveBytes(int bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("maxReceiveBytes is " + bytes + ", must be 0 or more");
    }
    maxReceiveBytes = bytes;
    return this;
  }

  int maxReceiveBytes() {
    return maxReceiveBytes;
  }

  String serviceConfigJson() {
    return serviceConfig;
  }

  String tokenFile() {
    return or(authTokenFile, "QUANTD_AUTH_TOKEN_FILE");
  }

  boolean insecureTokenIsAllowed() {
    return allowInsecureToken;
  }

  ChannelCredentials channelCredentials() {
    if (credentials != null) {
      return credentials;
    }
    String ca = or(tlsCa, "QUANTD_TLS_CA");
    String cert = or(tlsCert, "QUANTD_TLS_CERT");
    String key = or(tlsKey, "QUANTD_TLS_KEY");
    if (ca == null && cert == null && key == null) {
      return InsecureChannelCredentials.create();
    }
    if ((cert == null) != (key == null)) {
      throw new IllegalArgumentException((cert == null ? "tlsKey" : "tlsCert") + " is given (" + (cert == null ? key : cert)
          + "), " + (cert == null ? "tlsCert" : "tlsKey") + " is not: a client's certificate needs both");
    }
    TlsChannelCredentials.Builder builder = TlsChannelCredentials.newBuilder();
    try {
      if (ca != null) {
        builder.trustManager(pem("tlsCa", ca));
      }
      if (cert != null) {
        builder.keyManager(pem("tlsCert", cert), pem("tlsKey", key));
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("TLS: " + e.getMessage(), e);
    }
    return builder.build();
  }

  private static String or(String given, String variable) {
    String value = given != null ? given : Environment.get(variable);
    return value == null || value.isEmpty() ? null : value;
  }

  private static File pem(String name, String path) {
    try {
      // Bytes that are not text become characters that are not PEM.
      String content = new String(Files.readAllBytes(Path.of(path)), StandardCharsets.ISO_8859_1);
      if (!content.contains("-----BEGIN ")) {
        throw new IllegalArgumentException(name + ": " + path + " is not a PEM file");
      }
    } catch (IOException e) {
      throw new IllegalArgumentException(name + ": " + path + " cannot be read: " + e, e);
    }
    return new File(path);
  }
}
