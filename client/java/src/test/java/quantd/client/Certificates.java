package quantd.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Certificates made on the fly: an authority, a server's for 127.0.0.1 and a client's, as PEM files in one folder. */
final class Certificates {
  final Path folder;
  final Path ca;
  final Path serverCert;
  final Path serverKey;
  final Path clientCert;
  final Path clientKey;

  Certificates() throws Exception {
    folder = Files.createTempDirectory("quantd-java-");
    ca = folder.resolve("ca.pem");
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out",
        "ca.pem");
    issue("server", "subjectAltName=IP:127.0.0.1,DNS:localhost");
    issue("client", "extendedKeyUsage=clientAuth");
    serverCert = folder.resolve("server.pem");
    serverKey = folder.resolve("server.key");
    clientCert = folder.resolve("client.pem");
    clientKey = folder.resolve("client.key");
  }

  private void issue(String name, String extension) throws Exception {
    Files.writeString(folder.resolve(name + ".ext"), extension + "\n");
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr");
    openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", name + ".ext", "-out", name + ".pem");
  }

  private void openssl(String... arguments) throws Exception {
    List<String> command = new ArrayList<>(List.of("openssl"));
    command.addAll(List.of(arguments));
    Path log = folder.resolve("log");
    int status = new ProcessBuilder(command)
                     .directory(folder.toFile())
                     .redirectErrorStream(true)
                     .redirectOutput(log.toFile())
                     .start()
                     .waitFor();
    if (status != 0) {
      throw new IOException(command + ": " + Files.readString(log));
    }
  }
}
