package quantd.client;

import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.util.concurrent.TimeUnit;
import quantd.v1.QuantizationServiceGrpc;

/**
 * A connection to quantd, with the settings that its clients need: message limits, load balancing, retries, TLS, token. Thread safe;
 * one is enough for a process. Connects with the first call.
 *
 * <pre>{@code
 * try (Quantd quantd = Quantd.connect("127.0.0.1:50051")) {
 *   DynamicQuantizeResponse answer = quantd.blocking().withDeadlineAfter(10, SECONDS).dynamicQuantize(request);
 * }
 * }</pre>
 */
public final class Quantd implements AutoCloseable {
  // How much of a call's request gRPC keeps until it is answered, so that it can be sent again. With its default, 1 MiB, large
  // requests, which an overloaded server refuses first, would not be retried.
  private static final long RETRY_BYTES_A_CALL = 64L << 20;

  private static final long RETRY_BYTES = 256L << 20;

  private final ManagedChannel channel;

  private Quantd(ManagedChannel channel) {
    this.channel = channel;
  }

  /** Connects to QUANTD_ADDRESS, else 127.0.0.1:50051. */
  public static Quantd connect() {
    return connect(null, new ConnectOptions());
  }

  /** Connects to "host" (port 50051), "host:port", "[::1]:port", "unix:/path.sock", "dns:///host:port" ... */
  public static Quantd connect(String address) {
    return connect(address, new ConnectOptions());
  }

  /**
   * Connects to an address; if it is null, to QUANTD_ADDRESS or else 127.0.0.1:50051.
   *
   * @throws IllegalArgumentException for an address or a file that cannot be used, which it names
   */
  public static Quantd connect(String address, ConnectOptions options) {
    String target = Address.target(address);
    ChannelCredentials credentials = options.channelCredentials();
    ManagedChannelBuilder<?> builder = Grpc.newChannelBuilder(target, credentials)
                                           .maxInboundMessageSize(options.maxReceiveBytes())
                                           .defaultServiceConfig(ServiceConfig.parse(options.serviceConfigJson()))
                                           .enableRetry()
                                           .perRpcBufferLimit(RETRY_BYTES_A_CALL)
                                           .retryBufferSize(RETRY_BYTES);
    if (target.startsWith("unix:")) {
      // gRPC for Java would send the socket's path, which HTTP/2 does not allow as an authority.
      builder.overrideAuthority("localhost");
    }
    String tokenFile = options.tokenFile();
    if (tokenFile != null) {
      builder.intercept(new TokenInterceptor(tokenFile));
      if (credentials instanceof InsecureChannelCredentials && !Address.isLocal(target) && !options.insecureTokenIsAllowed()) {
        throw new IllegalArgumentException("authTokenFile: the token in " + tokenFile + " is not sent to " + target
            + " without TLS; give tlsCa, or allowInsecureToken");
      }
    }
    return new Quantd(builder.build());
  }

  /** The generated stub whose calls block until the answer has arrived. */
  public QuantizationServiceGrpc.QuantizationServiceBlockingStub blocking() {
    return QuantizationServiceGrpc.newBlockingStub(channel);
  }

  /** The generated stub whose calls return futures; cancelling one cancels its call. */
  public QuantizationServiceGrpc.QuantizationServiceFutureStub future() {
    return QuantizationServiceGrpc.newFutureStub(channel);
  }

  /** The generated stub with callbacks, for streams. */
  public QuantizationServiceGrpc.QuantizationServiceStub async() {
    return QuantizationServiceGrpc.newStub(channel);
  }

  /** The channel, for stubs of other services. */
  public ManagedChannel channel() {
    return channel;
  }

  /** Ends the connection; calls that do not finish within five seconds fail. */
  @Override
  public void close() {
    channel.shutdown();
    try {
      if (channel.awaitTermination(5, TimeUnit.SECONDS)) {
        return;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    channel.shutdownNow();
  }
}
