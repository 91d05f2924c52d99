"""Certificates that change while a server runs: no call is lost, no connection ends, and wrong files change nothing."""

import contextlib
import shutil

import grpc

from bystander import Bystander
from certificates import serial
from support import quantize, wait_for
from test_tls import failure
from tls import hang_up, own_files, start_tls  # noqa: F401


def test_certificates_change_under_load(own_files, start_tls):  # noqa: F811
    server = start_tls(own_files, *own_files.flags)
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(Bystander(server, server.new_stub())) for _ in range(4)]
        stack.enter_context(server.connect(timeout=60))
        accepted = server.metrics()["quantd_connections_accepted_total"]
        for i in range(3):
            new = own_files.servers.sign(f"new{i}")
            own_files.put(*new)
            if i == 1:
                hang_up(server)
            wait_for(lambda: server.served_serial() == serial(new[0]), 20, "new connections see the new certificate")  # noqa: B023
            before = len(callers[0].seconds)
            wait_for(lambda: len(callers[0].seconds) > before + 10, 30, "calls go on")  # noqa: B023
    assert [caller.failures for caller in callers] == [[]] * 4
    # The old connections are still there: only the test's, which looked at the certificate, are new.
    assert server.metrics()["quantd_connections_accepted_total"] - accepted < 200
    assert server.metrics()['quantd_reloads_total{what="certificates",result="ok"}'] >= 3


def test_a_bad_pair_changes_nothing(own_files, start_tls):  # noqa: F811
    server = start_tls(own_files, *own_files.flags)
    old = server.served_serial()
    own_files.cert.write_text("-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n")
    assert len(server.wait_for_log("certificates not reloaded, the old ones stay in use")) == 1
    assert server.served_serial() == old
    shutil.copy(own_files.strangers.sign("other")[1], own_files.key)
    own_files.cert.unlink()
    hang_up(server)
    wait_for(lambda: server.log().count("certificates not reloaded") >= 2, 20, "a line for each")
    assert server.served_serial() == old
    assert server.metrics()['quantd_reloads_total{what="certificates",result="refused"}'] >= 2
    new = own_files.servers.sign("new")
    own_files.put(*new)
    wait_for(lambda: server.served_serial() == serial(new[0]), 20, "the good pair")


def test_the_client_ca_changes(own_files, start_tls, tmp_path):  # noqa: F811
    ca = tmp_path / "ca.crt"
    shutil.copy(own_files.clients.file, ca)
    server = start_tls(own_files, *own_files.flags, f"--tls_client_ca={ca}", client=own_files.client)
    assert server.stub.Quantize(quantize([1.0]), timeout=10)
    stranger = own_files.strangers.sign("stranger", hosts=(), usage="clientAuth")
    assert failure(server.new_stub(credentials=own_files.credentials(stranger))).code() == grpc.StatusCode.UNAVAILABLE
    ca.write_text(own_files.strangers.file.read_text())
    server.wait_for_log("certificates reloaded")
    assert server.new_stub(credentials=own_files.credentials(stranger)).Quantize(quantize([1.0]), timeout=10)
    assert failure(server.new_stub()).code() == grpc.StatusCode.UNAVAILABLE
    assert server.stub.Quantize(quantize([1.0]), timeout=10)  # connected before
