package quantd.client;

import java.util.Map;

/** The environment. Tests put another in its place, which a process cannot do with its own. */
final class Environment {
  static Map<String, String> variables = System.getenv();

  private Environment() {}

  /** A variable's value, or null. */
  static String get(String name) {
    return variables.get(name);
  }
}
