package quantd.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Adds the token that a server with --auth_token_file requires; reads its file again when it may have changed. */
final class TokenInterceptor implements ClientInterceptor {
  private static final Metadata.Key<String> AUTHORIZATION = Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);
  private static final long READ_AGAIN_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String path;
  private final AtomicLong readAt = new AtomicLong(System.nanoTime());
  private volatile String token;

  TokenInterceptor(String path) {
    this.path = path;
    token = read(path);
  }

  /** The first line that is neither blank nor a comment (#). Never part of an exception's text. */
  private static String read(String path) {
    String content;
    try {
      content = Files.readString(Path.of(path), StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      throw new IllegalArgumentException("authTokenFile: " + path + " cannot be read: " + e, e);
    }
    String first = content.lines()
                       .map(String::trim)
                       .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                       .findFirst()
                       .orElseThrow(() -> new IllegalArgumentException("authTokenFile: " + path + " has no token"));
    if (!first.chars().allMatch(c -> c > 0x20 && c < 0x7f)) {
      throw new IllegalArgumentException("authTokenFile: the token in " + path + " contains blanks or non-ASCII characters");
    }
    return first;
  }

  private String current() {
    long now = System.nanoTime();
    long before = readAt.get();
    // Only one thread reads.
    if (now - before > READ_AGAIN_NANOS && readAt.compareAndSet(before, now)) {
      try {
        token = read(path);
      } catch (IllegalArgumentException e) {
        // The file may be being replaced: the present token may still be valid.
      }
    }
    return token;
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      @Override
      public void start(Listener<A> listener, Metadata headers) {
        headers.put(AUTHORIZATION, "Bearer " + current());
        super.start(listener, headers);
      }
    };
  }
}
