package quantd.client;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.util.concurrent.ListenableFuture;
import com.google.protobuf.ByteString;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.stub.ClientCallStreamObserver;
import io.grpc.stub.ClientResponseObserver;
import io.grpc.stub.MetadataUtils;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import quantd.v1.DataType;
import quantd.v1.DequantizeRequest;
import quantd.v1.DynamicQuantizeRequest;
import quantd.v1.DynamicQuantizeResponse;
import quantd.v1.EmbeddingRecipe;
import quantd.v1.GetServerInfoRequest;
import quantd.v1.QuantizeEmbeddingsRequest;
import quantd.v1.QuantizeRequest;
import quantd.v1.QuantizeResponse;
import quantd.v1.StreamRequest;
import quantd.v1.StreamResponse;
import quantd.v1.Tensor;

/** The client against the real server: friendly calls, wrong ones, cancelled ones, many of them, streams. */
@Timeout(300)
class QuantdTest {
  private static TestServer server;
  private static Quantd quantd;

  @BeforeAll
  static void start() throws Exception {
    server = new TestServer("--max_message_bytes=20000000");
    quantd = Quantd.connect(server.address);
  }

  @AfterAll
  static void stop() throws Exception {
    quantd.close();
    assertEquals(0, server.stop());
  }

  private static DynamicQuantizeRequest dynamic(Tensor x) {
    return DynamicQuantizeRequest.newBuilder().setX(x).setOutputType(DataType.DATA_TYPE_INT8).build();
  }

  private static DynamicQuantizeRequest dynamic(float... values) {
    return dynamic(Tensors.fromFloats(values, values.length));
  }

  private static Failure failure(org.junit.jupiter.api.function.Executable call) {
    return Failure.of(assertThrows(Exception.class, call));
  }

  @Test
  void quantizesAndBack() {
    float[] x = {-1, -0.5f, 0, 0.5f, 1, 2};
    Tensor scale = Tensors.fromFloats(new float[] {0.5f});
    Tensor zeroPoint = Tensors.fromInts(DataType.DATA_TYPE_UINT8, new int[] {10});
    QuantizeResponse answer = quantd.blocking().quantize(QuantizeRequest.newBuilder()
            .setX(Tensors.fromFloats(x, 2, 3))
            .setScale(scale)
            .setZeroPoint(zeroPoint)
            .setReportError(true)
            .build());
    assertArrayEquals(new byte[] {8, 9, 10, 11, 12, 14}, Tensors.toBytes(answer.getY()));
    assertEquals(List.of(2L, 3L), answer.getY().getShapeList());
    assertEquals(Double.POSITIVE_INFINITY, answer.getQuantizationError().getSqnrDb());
    Tensor back =
        quantd.blocking()
            .dequantize(DequantizeRequest.newBuilder().setX(answer.getY()).setScale(scale).setZeroPoint(zeroPoint).build())
            .getY();
    assertArrayEquals(x, Tensors.toFloats(back));
    assertEquals(20000000, quantd.blocking().getServerInfo(GetServerInfoRequest.getDefaultInstance()).getMaxMessageBytes());
  }

  /**
   * MXFP6 of 32 values: the largest is the type's largest, so that the block's scale is 1. By hand, from the OCP Microscaling
   * specification.
   */
  @Test
  void quantizesToSixBitsWithAScalePerBlock() {
    record Case(DataType type, float[] values, int... codes) {}
    for (Case each :
        new Case[] {new Case(DataType.DATA_TYPE_FLOAT6E2M3, new float[] {1, -1.5f, 7.5f, -0.125f, -7.5f}, 8, 44, 31, 33, 63),
            new Case(DataType.DATA_TYPE_FLOAT6E3M2, new float[] {1, 28, -0.0625f, 0.25f, -3, -28, 0.0625f}, 12, 31, 33, 4, 50, 63,
                1)}) {
      float[] x = Arrays.copyOf(each.values, 32);
      int[] codes = Arrays.copyOf(each.codes, 32);
      DynamicQuantizeResponse answer = quantd.blocking().dynamicQuantize(DynamicQuantizeRequest.newBuilder()
              .setX(Tensors.fromFloats(x, 32))
              .setOutputType(each.type)
              .setScaleType(DataType.DATA_TYPE_FLOAT8E8M0)
              .setAxis(-1)
              .setBlockSize(32)
              .build());
      assertArrayEquals(codes, Tensors.toInts(answer.getY()), each.type.name());
      assertArrayEquals(new int[] {127}, Tensors.toInts(answer.getYScale()), each.type.name());
      Tensor back = quantd.blocking()
                        .dequantize(DequantizeRequest.newBuilder()
                                .setX(Tensors.fromInts(each.type, codes, 32))
                                .setScale(answer.getYScale())
                                .setOutputType(DataType.DATA_TYPE_FLOAT)
                                .setAxis(-1)
                                .setBlockSize(32)
                                .build())
                        .getY();
      assertArrayEquals(x, Tensors.toFloats(back), each.type.name());
    }
  }

  @Test
  void sendsWhatIsLargerThanFourMebibytesAndTakesIt() {
    float[] x = new float[4 << 20];
    for (int i = 0; i < x.length; i++) {
      x[i] = i % 1000 - 500;
    }
    DynamicQuantizeResponse answer = quantd.blocking().dynamicQuantize(
        DynamicQuantizeRequest.newBuilder().setX(Tensors.fromFloats(x, 4, 1 << 20)).setAxis(0).build());
    Tensor back = quantd.blocking()
                      .dequantize(DequantizeRequest.newBuilder()
                              .setX(answer.getY())
                              .setScale(answer.getYScale())
                              .setZeroPoint(answer.getYZeroPoint())
                              .setAxis(0)
                              .build())
                      .getY();
    assertArrayEquals(x, Tensors.toFloats(back), 4);
  }

  @Test
  void emptyAndScalarTensors() {
    DynamicQuantizeResponse empty = quantd.blocking().dynamicQuantize(dynamic(Tensors.fromFloats(new float[0], 0, 3)));
    assertEquals(List.of(0L, 3L), empty.getY().getShapeList());
    assertEquals(0, Tensors.toBytes(empty.getY()).length);
    DynamicQuantizeResponse scalar = quantd.blocking().dynamicQuantize(dynamic(Tensors.fromFloats(new float[] {3})));
    assertEquals(List.of(), scalar.getY().getShapeList());
    assertEquals(1, Tensors.toInts(scalar.getY()).length);
  }

  @Test
  void embeddings() {
    Tensor x = Tensors.fromFloats(new float[] {1, -1, 0, 2, -3, 4, 5, -6, 7}, 1, 9);
    Tensor bits = quantd.blocking()
                      .quantizeEmbeddings(
                          QuantizeEmbeddingsRequest.newBuilder().setX(x).setRecipe(EmbeddingRecipe.EMBEDDING_RECIPE_BITS).build())
                      .getY();
    assertArrayEquals(new int[] {0b10010110, 0b10000000}, Tensors.toInts(bits));
    assertEquals("recipe",
        failure(() -> quantd.blocking().quantizeEmbeddings(QuantizeEmbeddingsRequest.newBuilder().setX(x).build())).field());
  }

  @Test
  void errorsNameTheField() {
    Failure nan = failure(() -> quantd.blocking().dynamicQuantize(dynamic(1, Float.NaN, 2)));
    assertEquals(Status.Code.INVALID_ARGUMENT, nan.code());
    assertEquals("x", nan.field());
    assertTrue(nan.message().contains("x[1] is nan"), nan.message());
    Failure scales = failure(()
                                 -> quantd.blocking().quantize(QuantizeRequest.newBuilder()
                                         .setX(Tensors.fromFloats(new float[6], 2, 3))
                                         .setScale(Tensors.fromFloats(new float[] {1, 1}, 2))
                                         .setAxis(1)
                                         .build()));
    assertEquals("scale", scales.field());
    Tensor cut = Tensor.newBuilder(Tensors.fromFloats(new float[3], 3)).addShape(2).build();
    Failure length = failure(() -> quantd.blocking().dynamicQuantize(dynamic(cut)));
    assertEquals("x", length.field());
    assertTrue(length.message().contains("12 bytes") && length.message().contains("24"), length.message());
    Failure large = failure(() -> quantd.blocking().dynamicQuantize(dynamic(new float[6 << 20])));
    assertEquals(Status.Code.RESOURCE_EXHAUSTED, large.code());
    assertTrue(large.message().contains("20000000"), large.message());
  }

  @Test
  void deadlineAndCancelling() {
    DynamicQuantizeRequest large = dynamic(new float[4 << 20]);
    assertEquals(Status.Code.DEADLINE_EXCEEDED,
        failure(() -> quantd.blocking().withDeadlineAfter(1, MILLISECONDS).dynamicQuantize(large)).code());
    ListenableFuture<DynamicQuantizeResponse> call = quantd.future().dynamicQuantize(large);
    assertTrue(call.cancel(true));
    assertTrue(call.isCancelled());
  }

  @Test
  void aThousandCallsAtOnceAThirdOfThemCancelled() throws Exception {
    float[] x = new float[1000];
    for (int i = 0; i < x.length; i++) {
      x[i] = i - 500;
    }
    DynamicQuantizeResponse expected = quantd.blocking().dynamicQuantize(dynamic(x));
    List<ListenableFuture<DynamicQuantizeResponse>> calls = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      calls.add(quantd.future().dynamicQuantize(dynamic(x)));
    }
    for (int i = 0; i < 1000; i += 3) {
      calls.get(i).cancel(true);
    }
    for (int i = 0; i < 1000; i++) {
      if (i % 3 != 0) {
        assertEquals(expected, calls.get(i).get());
      }
    }
    TestServer.until("end of all calls", () -> server.metric("quantd_inflight_requests") == 0);
  }

  /** Sends `count` items as fast as the server reads them; returns the answers by id. */
  private static final class Items implements ClientResponseObserver<StreamRequest, StreamResponse> {
    final Map<Long, StreamResponse> answers = new ConcurrentHashMap<>();
    final CompletableFuture<Void> end = new CompletableFuture<>();
    final CompletableFuture<ClientCallStreamObserver<StreamRequest>> call = new CompletableFuture<>();
    private final long count;
    private long next;

    Items(long count) {
      this.count = count;
    }

    static int length(long id) {
      return id % 100 == 0 ? 100_000 : (int) (1 + id % 50);
    }

    @Override
    public void beforeStart(ClientCallStreamObserver<StreamRequest> requests) {
      call.complete(requests);
      requests.setOnReadyHandler(() -> {
        while (requests.isReady() && next < count) {
          float[] values = new float[length(next)];
          Arrays.fill(values, next % 13 == 5 ? Float.NaN : next);
          requests.onNext(StreamRequest.newBuilder().setId(next).setDynamicQuantize(dynamic(values)).build());
          if (++next == count) {
            requests.onCompleted();
          }
        }
      });
    }

    @Override
    public void onNext(StreamResponse answer) {
      if (answers.put(answer.getId(), answer) != null) {
        end.completeExceptionally(new AssertionError("two answers for " + answer.getId()));
      }
    }

    @Override
    public void onError(Throwable error) {
      end.completeExceptionally(error);
    }

    @Override
    public void onCompleted() {
      end.complete(null);
    }
  }

  @Test
  void aStreamOfManyItemsWithBadOnes() throws Exception {
    Items items = new Items(2000);
    quantd.async().stream(items);
    items.end.get();
    assertEquals(2000, items.answers.size());
    items.answers.forEach((id, answer) -> {
      if (id % 13 == 5) {
        Failure failure = Failure.of(answer.getError());
        assertEquals(Status.Code.INVALID_ARGUMENT, failure.code());
        assertEquals("x", failure.field());
      } else {
        assertEquals(List.of((long) Items.length(id)), answer.getDynamicQuantize().getY().getShapeList());
      }
    });
  }

  @Test
  void aStreamThatIsCancelledOrTooLate() throws Exception {
    Items items = new Items(Long.MAX_VALUE);
    quantd.async().stream(items);
    TestServer.until("answers", () -> items.answers.size() > 100);
    items.call.get().cancel("enough", null);
    assertEquals(Status.Code.CANCELLED, Failure.of(assertThrows(ExecutionException.class, () -> items.end.get())).code());
    Items late = new Items(Long.MAX_VALUE);
    quantd.async().withDeadlineAfter(100, MILLISECONDS).stream(late);
    assertEquals(Status.Code.DEADLINE_EXCEEDED, Failure.of(assertThrows(ExecutionException.class, () -> late.end.get())).code());
    TestServer.until("end of all calls", () -> server.metric("quantd_inflight_requests") == 0);
  }

  @Test
  void aServerThatGoesInTheMiddleOfCalls() throws Exception {
    TestServer other = new TestServer();
    try (Quantd lost = Quantd.connect(other.address, new ConnectOptions().serviceConfig("{}"))) {
      lost.blocking().getServerInfo(GetServerInfoRequest.getDefaultInstance());
      List<ListenableFuture<DynamicQuantizeResponse>> calls = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        calls.add(lost.future().dynamicQuantize(dynamic(new float[1 << 20])));
      }
      Items items = new Items(Long.MAX_VALUE);
      lost.async().stream(items);
      TestServer.until("answers", () -> items.answers.size() > 10);
      other.kill();
      for (ListenableFuture<DynamicQuantizeResponse> call : calls) {
        try {
          call.get();
        } catch (ExecutionException e) {
          assertEquals(Status.Code.UNAVAILABLE, Failure.of(e).code(), e.toString());
        }
      }
      assertEquals(Status.Code.UNAVAILABLE, Failure.of(assertThrows(ExecutionException.class, () -> items.end.get())).code());
      assertEquals(Status.Code.UNAVAILABLE,
          failure(() -> lost.blocking().getServerInfo(GetServerInfoRequest.getDefaultInstance())).code());
    } finally {
      other.close();
    }
  }

  /** Compressed for all calls, and for one: the answer is the same, and the server counts it. */
  @Test
  void answersThatAreCompressed() throws Exception {
    byte[] codes = new byte[100_000];
    for (int i = 0; i < codes.length; i++) {
      codes[i] = (byte) (i % 7);
    }
    Tensor x = Tensor.newBuilder()
                   .setDataType(DataType.DATA_TYPE_UINT8)
                   .addShape(codes.length)
                   .setRawData(ByteString.copyFrom(codes))
                   .build();
    DequantizeRequest request = DequantizeRequest.newBuilder().setX(x).setScale(Tensors.fromFloats(new float[] {0.5f})).build();
    Tensor plain = quantd.blocking().dequantize(request).getY();
    Metadata asks = new Metadata();
    asks.put(Metadata.Key.of("quantd-compress-answers", Metadata.ASCII_STRING_MARSHALLER), "gzip");
    for (String flag : List.of("gzip", "none")) {
      try (TestServer other = new TestServer("--compress_answers=" + flag); Quantd client = Quantd.connect(other.address)) {
        Metadata headers = flag.equals("gzip") ? new Metadata() : asks;
        var asking = client.blocking().withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
        Tensor y = asking.dequantize(request).getY();
        assertEquals(plain, y, flag);
        assertEquals(1, other.metric("quantd_compressed_answers_total"), flag);
      }
    }
  }

  @Test
  void aUnixSocket() throws Exception {
    Path socket = Files.createTempDirectory("quantd-java-").resolve("quantd.sock");
    try (TestServer other = new TestServer("--listen=unix:" + socket); Quantd unix = Quantd.connect("unix:" + socket)) {
      assertTrue(!unix.blocking().getServerInfo(GetServerInfoRequest.getDefaultInstance()).getVersion().isEmpty());
    }
  }
}
