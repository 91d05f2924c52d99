package quantd

// ServiceConfig is the service config that Dial uses: round robin over all servers of the name whose health is SERVING; a call that fails
// with UNAVAILABLE is made again. It is deploy/service_config.json; grpc.WithDefaultServiceConfig replaces it.
const ServiceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "healthCheckConfig": {"serviceName": ""},
  "methodConfig": [
    {
      "name": [{"service": "quantd.v1.QuantizationService"}, {"service": "quantd.v1.ParametersService"}],
      "retryPolicy": {
        "maxAttempts": 5,
        "initialBackoff": "0.05s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"]
      }
    }
  ]
}
`
