package quantd.client;

import java.util.Map;

/** The environment. Tests replace it, because a process cannot change its own. */
final class Environment {
  static Map<String, String> variables = System.getenv();

  private Environment() {}

  /** A variable's value, or null. */
  static String get(String name) {
    return variables.get(name);
  }
}
