package quantd.client;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Converts addresses as users write them to gRPC targets. */
final class Address {
  private static final int DEFAULT_PORT = 50051;
  private static final List<String> AS_THEY_ARE = List.of("unix:", "xds:", "passthrough:");
  private static final Pattern BRACKETS = Pattern.compile("(\\[[^\\]]*\\])(?::(.*))?", Pattern.DOTALL);
  private static final Pattern PORT = Pattern.compile("[0-9]{1,5}");
  private static final Pattern DNS = Pattern.compile("dns:(//[^/]*/)?");

  private static final Pattern LOCAL = Pattern.compile("dns:(//[^/]*/)?(127(\\.\\d{1,3}){3}|localhost|%5B::1%5D)(:\\d+)?");

  private Address() {}

  /** The target of an address; without one, of QUANTD_ADDRESS or else 127.0.0.1:50051. The default port is 50051. */
  static String target(String given) {
    String address = given != null ? given : Environment.get("QUANTD_ADDRESS");
    if (address == null || (given == null && address.isEmpty())) {
      address = "127.0.0.1:" + DEFAULT_PORT;
    }
    String trimmed = address.trim();
    if (trimmed.isEmpty()) {
      throw new IllegalArgumentException("address is empty; give one such as \"127.0.0.1:50051\"");
    }
    if (AS_THEY_ARE.stream().anyMatch(trimmed::startsWith)) {
      return trimmed;
    }
    if (trimmed.startsWith("http://") || trimmed.startsWith("https://")) {
      throw new IllegalArgumentException("address \"" + trimmed + "\": quantd speaks gRPC; give host:port, and tlsCa for TLS");
    }
    Matcher dns = DNS.matcher(trimmed);
    if (dns.lookingAt()) {
      return dns.group() + encoded(withPort(trimmed.substring(dns.end())));
    }
    // gRPC would take "host:port" for the scheme "host".
    return trimmed.contains("://") ? trimmed : "dns:///" + encoded(withPort(trimmed));
  }

  /** gRPC for Java needs a URI, whose path may not contain brackets. */
  private static String encoded(String host) {
    return host.replace("[", "%5B").replace("]", "%5D");
  }

  /** Whether what is sent to a target stays on this machine: Unix sockets and loopback. */
  static boolean isLocal(String target) {
    return target.startsWith("unix:") || LOCAL.matcher(target).matches();
  }

  private static String withPort(String host) {
    if (host.startsWith("[")) {
      Matcher parts = BRACKETS.matcher(host);
      if (!parts.matches()) {
        throw new IllegalArgumentException(
            "address \"" + host + "\": an address that begins with [ must be [IPv6 address] or [IPv6 address]:port");
      }
      return parts.group(1) + ":" + port(host, parts.group(2));
    }
    int colon = host.indexOf(':');
    if (colon != host.lastIndexOf(':')) { // more than one colon: IPv6 without brackets
      return "[" + host + "]:" + DEFAULT_PORT;
    }
    String name = colon < 0 ? host : host.substring(0, colon);
    if (name.isEmpty()) {
      throw new IllegalArgumentException("address \"" + host + "\" names no host");
    }
    return name + ":" + port(host, colon < 0 ? null : host.substring(colon + 1));
  }

  /** A port that can exist: any other would be part of the name to gRPC, which would look it up until the deadline. */
  private static String port(String host, String given) {
    if (given == null || given.isEmpty()) {
      return String.valueOf(DEFAULT_PORT);
    }
    if (!PORT.matcher(given).matches() || Integer.parseInt(given) < 1 || Integer.parseInt(given) > 65535) {
      throw new IllegalArgumentException("address \"" + host + "\": port \"" + given + "\" must be a number from 1 to 65535");
    }
    return given;
  }
}
