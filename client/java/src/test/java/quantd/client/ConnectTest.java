package quantd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Any;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerCredentials;
import io.grpc.ServerInterceptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsServerCredentials;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;
import org.junit.jupiter.api.function.Executable;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.FieldViolation;
import quantd.v1.GetServerInfoRequest;
import quantd.v1.GetServerInfoResponse;
import quantd.v1.QuantizationServiceGrpc.QuantizationServiceImplBase;

/** How a client is set up: addresses, TLS, tokens, retries, against gRPC servers that do what quantd would not. */
@Timeout(300)
class ConnectTest {
  private static final GetServerInfoRequest INFO = GetServerInfoRequest.getDefaultInstance();
  private static Certificates tls;
  private Server server;

  @BeforeAll
  static void certificates() throws Exception {
    tls = new Certificates();
  }

  @AfterEach
  void stop() throws Exception {
    Environment.variables = System.getenv();
    if (server != null) {
      server.shutdownNow().awaitTermination();
    }
  }

  /** Answers "test"; large requests only at every third attempt. */
  private static final class Service extends QuantizationServiceImplBase implements ServerInterceptor {
    final AtomicInteger tries = new AtomicInteger();
    final List<String> tokens = new CopyOnWriteArrayList<>();

    @Override
    public void getServerInfo(GetServerInfoRequest request, StreamObserver<GetServerInfoResponse> answers) {
      answers.onNext(GetServerInfoResponse.newBuilder().setVersion("test").build());
      answers.onCompleted();
    }

    @Override
    public void dynamicQuantize(DynamicQuantizeRequest request, StreamObserver<DynamicQuantizeResponse> answers) {
      if (tries.incrementAndGet() % 3 != 0) {
        answers.onError(Status.UNAVAILABLE.withDescription("full").asException());
        return;
      }
      answers.onNext(DynamicQuantizeResponse.newBuilder().setYScale(request.getX()).build());
      answers.onCompleted();
    }

    @Override
    public <Q, A> ServerCall.Listener<Q> interceptCall(ServerCall<Q, A> call, Metadata headers, ServerCallHandler<Q, A> next) {
      String token = headers.get(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER));
      if (token != null) {
        tokens.add(token);
      }
      return next.startCall(call, headers);
    }
  }

  private String serve(Service service, ServerCredentials credentials) throws Exception {
    server = Grpc.newServerBuilderForPort(0, credentials)
                 .addService(service)
                 .intercept(service)
                 .maxInboundMessageSize(Integer.MAX_VALUE)
                 .build()
                 .start();
    return "127.0.0.1:" + server.getPort();
  }

  private static String version(String address, ConnectOptions options) {
    try (Quantd quantd = Quantd.connect(address, options)) {
      return quantd.blocking().getServerInfo(INFO).getVersion();
    }
  }

  private static void unavailable(Executable call) {
    StatusRuntimeException thrown = assertThrows(StatusRuntimeException.class, call);
    assertEquals(Status.Code.UNAVAILABLE, Failure.of(thrown).code(), thrown.toString());
  }

  private static void refused(String text, Executable made) {
    String said = assertThrows(IllegalArgumentException.class, made).getMessage();
    assertTrue(said.contains(text), said);
  }

  @Test
  void addresses() {
    Map<String, String> table = Map.of("host", "dns:///host:50051", " host:1", "dns:///host:1", "::1", "dns:///%5B::1%5D:50051",
        "[::1]", "dns:///%5B::1%5D:50051", "[::1]:7", "dns:///%5B::1%5D:7", "unix:/a.sock", "unix:/a.sock", "dns:///host",
        "dns:///host:50051", "dns://8.8.8.8/host:9", "dns://8.8.8.8/host:9", "xds:///a", "xds:///a");
    table.forEach((given, expected) -> assertEquals(expected, Address.target(given)));
    Environment.variables = Map.of();
    assertEquals("dns:///127.0.0.1:50051", Address.target(null));
    Environment.variables = Map.of("QUANTD_ADDRESS", "other");
    assertEquals("dns:///other:50051", Address.target(null));
    for (String bad : List.of("", " ", ":1", "[::1", "http://host", "[::1]x", "dns:///")) {
      assertThrows(IllegalArgumentException.class, () -> Address.target(bad), bad);
    }
    assertEquals("dns:///host:65535", Address.target("host:65535"));
    for (String port : List.of("65536", "99999", "99999999999999999999", "0", "-1", "+1", "a", "1a", "0x50", "\u0661")) {
      for (String host : List.of("127.0.0.1", "[::1]", "dns:///a")) {
        String bad = host + ":" + port;
        String said = assertThrows(IllegalArgumentException.class, () -> Quantd.connect(bad), bad).getMessage();
        assertTrue(said.contains("port \"" + port + "\"") && said.contains("65535"), said);
      }
    }
  }

  @Test
  void tlsByArgumentsByTheEnvironmentAndWithTheWrongAuthority() throws Exception {
    String address = serve(new Service(), TlsServerCredentials.create(tls.serverCert.toFile(), tls.serverKey.toFile()));
    assertEquals("test", version(address, new ConnectOptions().tlsCa(tls.ca)));
    ConnectOptions once = new ConnectOptions().serviceConfig("{}");
    unavailable(() -> version(address, once)); // plain text
    unavailable(() -> version(address, new ConnectOptions().serviceConfig("{}").tlsCa(tls.clientCert)));
    Environment.variables = Map.of("QUANTD_TLS_CA", tls.ca.toString());
    assertEquals("test", version(address, new ConnectOptions()));
  }

  @Test
  void tlsWithAClientsCertificate() throws Exception {
    String address = serve(new Service(),
        TlsServerCredentials.newBuilder()
            .keyManager(tls.serverCert.toFile(), tls.serverKey.toFile())
            .trustManager(tls.ca.toFile())
            .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
            .build());
    assertEquals("test", version(address, new ConnectOptions().tlsCa(tls.ca).tlsCert(tls.clientCert, tls.clientKey)));
    unavailable(() -> version(address, new ConnectOptions().tlsCa(tls.ca).serviceConfig("{}")));
    Environment.variables = Map.of("QUANTD_TLS_CA", tls.ca.toString(), "QUANTD_TLS_CERT", tls.clientCert.toString(),
        "QUANTD_TLS_KEY", tls.clientKey.toString());
    assertEquals("test", version(address, new ConnectOptions()));
  }

  @Test
  void filesThatCannotBeUsedAreNamed() throws Exception {
    Path none = tls.folder.resolve("none");
    Path empty = Files.writeString(tls.folder.resolve("empty"), "\n");
    refused("tlsCa: " + none + " cannot be read", () -> Quantd.connect("host", new ConnectOptions().tlsCa(none)));
    refused("tlsCa: " + empty + " is not a PEM file", () -> Quantd.connect("host", new ConnectOptions().tlsCa(empty)));
    refused("authTokenFile: " + none, () -> Quantd.connect("host", new ConnectOptions().authTokenFile(none)));
    refused(empty + " has no token", () -> Quantd.connect("host", new ConnectOptions().authTokenFile(empty)));
    Path secret = Files.writeString(tls.folder.resolve("secret"), "two words\n");
    refused(
        "the token in " + secret + " contains blanks", () -> Quantd.connect("host", new ConnectOptions().authTokenFile(secret)));
    Files.writeString(secret, "word\n");
    refused("is not sent to dns:///host:50051", () -> Quantd.connect("host", new ConnectOptions().authTokenFile(secret)));
    Quantd.connect("host", new ConnectOptions().authTokenFile(secret).tlsCa(tls.ca)).close();
    Quantd.connect("host", new ConnectOptions().authTokenFile(secret).allowInsecureToken()).close();
    for (String local : List.of("127.0.0.1", "::1", "localhost", "unix:/a")) {
      Quantd.connect(local, new ConnectOptions().authTokenFile(secret)).close();
    }
    refused("serviceConfig", () -> Quantd.connect("host", new ConnectOptions().serviceConfig("{")));
    refused("-1", () -> new ConnectOptions().maxReceiveBytes(-1));
    Environment.variables = Map.of("QUANTD_TLS_CERT", tls.clientCert.toString());
    refused("tlsCert is given (" + tls.clientCert + "), tlsKey is not", () -> Quantd.connect("host"));
  }

  @Test
  void aTokenGoesWithEveryCallAndANewOneOnceTheFileHasIt() throws Exception {
    Service service = new Service();
    String address = serve(service, InsecureServerCredentials.create());
    Path file = Files.writeString(tls.folder.resolve("token"), "# of tests\n\n first \nsecond line\n");
    Environment.variables = Map.of("QUANTD_AUTH_TOKEN_FILE", file.toString());
    try (Quantd quantd = Quantd.connect(address)) {
      quantd.blocking().getServerInfo(INFO);
      assertEquals(List.of("Bearer first"), service.tokens);
      Files.writeString(file, "next");
      TestServer.until("new token", () -> {
        quantd.future().getServerInfo(INFO).get();
        return service.tokens.contains("Bearer next");
      });
      Files.delete(file);
      quantd.blocking().getServerInfo(INFO);
      assertEquals("Bearer next", service.tokens.get(service.tokens.size() - 1));
    }
  }

  @Test
  void anOverloadedServerIsAskedAgainAlsoWithALargeRequest() throws Exception {
    Service service = new Service();
    String address = serve(service, InsecureServerCredentials.create());
    DynamicQuantizeRequest request =
        DynamicQuantizeRequest.newBuilder().setX(Tensors.fromFloats(new float[4 << 20], 4 << 20)).build();
    try (Quantd quantd = Quantd.connect(address)) {
      assertEquals(request.getX(), quantd.blocking().dynamicQuantize(request).getYScale());
    }
    assertEquals(3, service.tries.get());
    try (Quantd quantd = Quantd.connect(address, new ConnectOptions().serviceConfig("{}"))) {
      unavailable(() -> quantd.blocking().dynamicQuantize(request));
    }
    assertEquals(4, service.tries.get());
  }

  /** HTTP/2 by hand: settings, then RST_STREAM with CANCEL for every stream. */
  private static void dropCalls(ServerSocket listening) {
    try (Socket socket = listening.accept()) {
      DataInputStream in = new DataInputStream(socket.getInputStream());
      DataOutputStream out = new DataOutputStream(socket.getOutputStream());
      in.readFully(new byte[24]);
      out.write(new byte[] {0, 0, 0, 4, 0, 0, 0, 0, 0});
      while (true) {
        int lengthAndType = in.readInt();
        int flags = in.read();
        int stream = in.readInt();
        in.readFully(new byte[lengthAndType >>> 8]);
        int type = lengthAndType & 0xff;
        if (type == 1) {
          out.writeInt(4 << 8 | 3);
          out.write(0);
          out.writeInt(stream);
          out.writeInt(8);
        } else if (type == 4 && (flags & 1) == 0) {
          out.write(new byte[] {0, 0, 0, 4, 1, 0, 0, 0, 0});
        }
      }
    } catch (IOException e) {
      // The client has disconnected.
    }
  }

  @Test
  void aCallThatTheServerDropsIsUnavailable() throws Exception {
    try (ServerSocket listening = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Thread thread = new Thread(() -> dropCalls(listening));
      thread.start();
      unavailable(() -> version("127.0.0.1:" + listening.getLocalPort(), new ConnectOptions().serviceConfig("{}")));
      thread.join();
    }
  }

  @Test
  @EnabledIfEnvironmentVariable(named = "TEST_TLS_ADDRESS", matches = ".+")
  void againstQuantdWithTlsClientCertificatesAndAToken() {
    Path at = Path.of(System.getenv("TEST_CERTIFICATES"));
    String address = System.getenv("TEST_TLS_ADDRESS");
    Supplier<ConnectOptions> tlsOnly = () -> new ConnectOptions().serviceConfig("{}").tlsCa(at.resolve("ca.pem"));
    Supplier<ConnectOptions> all = () -> tlsOnly.get().tlsCert(at.resolve("client.pem"), at.resolve("client.key"));
    DynamicQuantizeRequest large =
        DynamicQuantizeRequest.newBuilder().setX(Tensors.fromFloats(new float[2 << 20], 2 << 20)).build();
    for (String host : List.of(address, "localhost:" + address.substring(address.lastIndexOf(':') + 1))) {
      try (Quantd quantd = Quantd.connect(host, all.get().authTokenFile(at.resolve("token")))) {
        assertEquals(2 << 20, quantd.blocking().dynamicQuantize(large).getY().getRawData().size());
      }
    }
    for (ConnectOptions wrong : List.of(all.get(), all.get().authTokenFile(at.resolve("wrong-token")))) {
      Executable call = () -> version(address, wrong);
      assertEquals(Status.Code.UNAUTHENTICATED, Failure.of(assertThrows(StatusRuntimeException.class, call)).code());
    }
    ConnectOptions other = all.get().tlsCa(at.resolve("other-ca.pem"));
    for (ConnectOptions wrong : List.of(other, tlsOnly.get())) {
      unavailable(() -> version(address, wrong.authTokenFile(at.resolve("token"))));
    }
    // Over plain text the server can say why it refuses a client; gRPC changes the code.
    Executable plain = () -> version(address, new ConnectOptions().serviceConfig("{}").authTokenFile(at.resolve("token")));
    Status.Code code = Failure.of(assertThrows(StatusRuntimeException.class, plain)).code();
    assertTrue(List.of(Status.Code.UNAVAILABLE, Status.Code.PERMISSION_DENIED, Status.Code.INTERNAL).contains(code), code.name());
  }

  @Test
  void detailsOfAnErrorAreParsedAndDamagedOnesDoNotHideIt() {
    com.google.rpc.Status.Builder status =
        com.google.rpc.Status.newBuilder()
            .setCode(14)
            .setMessage("full")
            .addDetails(Any.pack(BadRequest.newBuilder()
                    .addFieldViolations(BadRequest.FieldViolation.newBuilder().setField("scale").setDescription("zero"))
                    .build()))
            .addDetails(Any.pack(ErrorInfo.newBuilder().setReason("QUEUE_FULL").build()))
            .addDetails(Any.pack(RetryInfo.newBuilder()
                    .setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(2).setNanos(5))
                    .build()));
    Failure failure = Failure.of(new IllegalStateException(StatusProto.toStatusRuntimeException(status.build())));
    assertEquals(new Failure(Status.Code.UNAVAILABLE, "full",
                     List.of(FieldViolation.newBuilder().setField("scale").setDescription("zero").build()), "QUEUE_FULL",
                     Optional.of(Duration.ofSeconds(2, 5))),
        failure);
    status.setDetails(0, status.getDetails(0).toBuilder().setValue(com.google.protobuf.ByteString.copyFromUtf8("\n\377")));
    failure = Failure.of(StatusProto.toStatusRuntimeException(status.build()));
    assertEquals(Status.Code.UNAVAILABLE, failure.code());
    assertEquals("full", failure.message());
    assertEquals("", failure.field());
    assertEquals(Status.Code.UNKNOWN, Failure.of(new IllegalStateException("other")).code());
  }
}
