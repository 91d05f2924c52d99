// The cases of README.md with gRPC's library for Java: java Steps.java PORT CA|- CASE. Ends with an exception if something is wrong.

import com.google.common.io.ByteStreams;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

public final class Steps {
  private static final String NAME = "größe 測試 ☺ 😀";

  private static final MethodDescriptor.Marshaller<byte[]> RAW = new MethodDescriptor.Marshaller<>() {
    @Override
    public InputStream stream(byte[] message) {
      return new ByteArrayInputStream(message);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return ByteStreams.toByteArray(stream);
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
  };

  private static MethodDescriptor<byte[], byte[]> method(MethodDescriptor.MethodType type, String name) {
    return MethodDescriptor.newBuilder(RAW, RAW).setType(type).setFullMethodName(name).build();
  }

  private static final MethodDescriptor<byte[], byte[]> CHECK =
      method(MethodDescriptor.MethodType.UNARY, "grpc.health.v1.Health/Check");
  private static final MethodDescriptor<byte[], byte[]> WATCH =
      method(MethodDescriptor.MethodType.SERVER_STREAMING, "grpc.health.v1.Health/Watch");
  private static final MethodDescriptor<byte[], byte[]> QUANTIZE =
      method(MethodDescriptor.MethodType.UNARY, "quantd.v1.QuantizationService/DynamicQuantize");
  private static final MethodDescriptor<byte[], byte[]> UNARY =
      method(MethodDescriptor.MethodType.UNARY, "grpc.testing.TestService/UnaryCall");

  private static void require(boolean condition, String what) {
    if (!condition)
      throw new IllegalStateException(what);
  }

  private static ManagedChannel connect(int port, String ca) throws IOException {
    var credentials = ca.equals("-") ? InsecureChannelCredentials.create()
                                     : TlsChannelCredentials.newBuilder().trustManager(new File(ca)).build();
    return Grpc.newChannelBuilderForAddress("127.0.0.1", port, credentials).overrideAuthority("localhost").build();
  }

  private static CallOptions soon(long milliseconds) {
    return CallOptions.DEFAULT.withDeadlineAfter(milliseconds, TimeUnit.MILLISECONDS);
  }

  private static byte[] call(Channel channel, MethodDescriptor<byte[], byte[]> method, byte[] request) {
    return ClientCalls.blockingUnaryCall(channel, method, soon(100_000), request);
  }

  private static String fails(Runnable call, Status.Code code) {
    try {
      call.run();
    } catch (StatusRuntimeException e) {
      require(e.getStatus().getCode() == code, e.toString());
      return e.getStatus().getDescription();
    }
    throw new IllegalStateException("not " + code);
  }

  private static byte[] field(int number, byte[]... payload) throws IOException {
    var all = new ByteArrayOutputStream();
    for (byte[] part : payload) all.write(part);
    var bytes = new ByteArrayOutputStream();
    bytes.write(number << 3 | 2);
    bytes.write(all.size());
    bytes.write(all.toByteArray());
    return bytes.toByteArray();
  }

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    ManagedChannel channel = connect(port, args[1]);
    switch (args[2]) {
      case "deadline" -> {
        long began = System.nanoTime();
        // The first call of a channel also waits for its connection, and for classes to load.
        call(channel, CHECK, new byte[0]);
        Iterator<byte[]> watch = ClientCalls.blockingServerStreamingCall(channel, WATCH, soon(300), new byte[0]);
        watch.next();
        fails(watch::next, Status.Code.DEADLINE_EXCEEDED);
        require(System.nanoTime() - began >= 290_000_000L, "too early");
      }
      case "cancel" -> {
        try (var context = Context.current().withCancellation()) {
          context.run(() -> {
            Iterator<byte[]> watch = ClientCalls.blockingServerStreamingCall(channel, WATCH, CallOptions.DEFAULT, new byte[0]);
            watch.next();
            context.cancel(null);
            fails(watch::next, Status.Code.CANCELLED);
          });
        }
        call(channel, CHECK, new byte[0]);
      }
      case "unicode_status" -> {
        // A FLOAT tensor of 4 bytes.
        byte[] place = field(6, field(1, NAME.getBytes(StandardCharsets.UTF_8)), new byte[] {0x18, 4});
        byte[] request = field(1, new byte[] {8, 1}, place);
        String text = fails(() -> call(channel, QUANTIZE, request), Status.Code.INVALID_ARGUMENT);
        require(text.contains(NAME), text);
      }
      case "soak" -> {
        for (int i = 0; i < 10_000; ++i) call(channel, CHECK, new byte[0]);
      }
      case "channels" -> {
        for (int i = 0; i < 1_000; ++i) {
          ManagedChannel one = connect(port, args[1]);
          call(one, CHECK, new byte[0]);
          one.shutdownNow();
        }
      }
      case "concurrent_large_unary" -> {
        // For the interop server: 271,828 bytes get 314,159 in return.
        byte[] head = {
            0x10, (byte) 0xaf, (byte) 0x96, 0x13, 0x1a, (byte) 0xd8, (byte) 0xcb, 0x10, 0x12, (byte) 0xd4, (byte) 0xcb, 0x10};
        var request = new ByteArrayOutputStream();
        request.write(head);
        request.write(new byte[271_828]);
        List<Future<byte[]>> answers = new ArrayList<>();
        for (int i = 0; i < 1_000; ++i) {
          ClientCall<byte[], byte[]> call = channel.newCall(UNARY, soon(100_000));
          answers.add(ClientCalls.futureUnaryCall(call, request.toByteArray()));
        }
        for (Future<byte[]> answer : answers) {
          int size = answer.get().length;
          require(size > 314_159 && size < 314_200, size + " bytes");
        }
      }
      default -> throw new IllegalArgumentException("there is no step " + args[2]);
    }
    channel.shutdownNow();
  }
}
