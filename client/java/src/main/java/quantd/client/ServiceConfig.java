package quantd.client;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Service configs in the form that gRPC needs: maps, lists, strings and doubles. */
final class ServiceConfig {
  private ServiceConfig() {}

  /** Parses a text; if it is null, deploy/service_config.json, which the build copies beside this class. */
  @SuppressWarnings("unchecked") // keys of JSON objects are strings
  static Map<String, ?> parse(String json) {
    try {
      Map<String, ?> parsed = new Gson().fromJson(json != null ? json : builtIn(), Map.class);
      if (parsed != null) {
        return parsed;
      }
    } catch (JsonParseException e) {
      throw new IllegalArgumentException("serviceConfig is not a JSON object: " + e.getMessage(), e);
    }
    throw new IllegalArgumentException("serviceConfig is empty");
  }

  private static String builtIn() {
    try (InputStream stream = ServiceConfig.class.getResourceAsStream("service_config.json")) {
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new IllegalStateException("service_config.json in the jar: " + e.getMessage(), e);
    }
  }
}
