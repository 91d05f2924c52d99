/**
 * A thin helper around quantd's generated stubs, which are in {@code quantd.v1}: {@link quantd.client.Quantd} connects,
 * {@link quantd.client.Tensors} makes tensors of arrays and arrays of tensors, {@link quantd.client.Failure} reads the
 * status of a failed call.
 */
package quantd.client;
