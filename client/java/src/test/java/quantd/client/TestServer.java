package quantd.client;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** A quantd for one test, on ports that it picks itself. */
final class TestServer implements AutoCloseable {
  private static final long DEADLINE_MILLIS = 60_000;

  final String address;
  private final String http;
  private final Process process;

  TestServer(String... flags) throws Exception {
    Path folder = Files.createTempDirectory("quantd-java-");
    Path ready = folder.resolve("ready.json");
    File log = folder.resolve("log").toFile();
    String built = Path.of("../../build/release/server/quantd").toAbsolutePath().toString();
    List<String> command = new ArrayList<>(List.of(System.getenv().getOrDefault("TEST_QUANTD", built), "--listen=127.0.0.1:0",
        "--http_listen=127.0.0.1:0", "--ready_file=" + ready));
    command.addAll(List.of(flags));
    ProcessBuilder builder = new ProcessBuilder(command).redirectError(log).redirectOutput(ProcessBuilder.Redirect.DISCARD);
    builder.environment().keySet().removeIf(name -> name.startsWith("QUANTD_"));
    process = builder.start();
    until("ready file", () -> {
      if (!process.isAlive()) {
        throw new IOException("quantd ended: " + Files.readString(log.toPath()));
      }
      return Files.exists(ready) && Files.size(ready) > 0;
    });
    JsonObject said = JsonParser.parseString(Files.readString(ready)).getAsJsonObject();
    address = said.getAsJsonArray("grpc").get(0).getAsString();
    http = said.get("http").getAsString();
  }

  /** Polls until the condition holds. */
  static void until(String what, Callable<Boolean> condition) throws Exception {
    long end = System.currentTimeMillis() + DEADLINE_MILLIS;
    while (!condition.call()) {
      if (System.currentTimeMillis() > end) {
        throw new AssertionError("no " + what + " within " + DEADLINE_MILLIS + " ms");
      }
      Thread.sleep(20);
    }
  }

  /** Sum of the series of a metric. */
  double metric(String name) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + http + "/metrics")).build();
    String text = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body();
    return text.lines()
        .filter(line -> line.startsWith(name + " ") || line.startsWith(name + "{"))
        .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
        .sum();
  }

  void kill() {
    process.destroyForcibly();
  }

  /** Ends it as an operator would, and returns its exit code. */
  int stop() throws InterruptedException {
    process.destroy();
    return process.waitFor();
  }

  @Override
  public void close() throws InterruptedException {
    stop();
  }
}
