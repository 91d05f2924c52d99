"""A TCP balancer that behaves as kube-proxy does: a new connection goes to a server that is ready, and stays there until one side closes it,
whatever happens to the server. It learns only after some time that a server is ready or not, as in a cluster.
"""

import asyncio
import threading
import urllib.error
import urllib.request

LOOK_EVERY = 0.1


class Balancer:
    """servers: pairs (gRPC host:port, HTTP host:port). lag: seconds until a change of /readyz takes effect here."""

    def __init__(self, servers, lag):
        self._servers, self._lag = list(servers), lag
        self._ready = [True] * len(self._servers)
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started, self._ended = threading.Event(), threading.Event()
        self._thread.start()
        assert self._started.wait(10)
        self._looks = [threading.Thread(target=self._look, args=(index,), daemon=True) for index in range(len(self._servers))]
        for thread in self._looks:
            thread.start()

    def replace(self, index, server):
        """Puts another server in the place of one."""
        self._servers[index] = server

    def ready(self, index):
        return self._ready[index]

    def close(self):
        self._ended.set()
        for thread in self._looks:
            thread.join()
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _cancel_all(self):
        self._listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _look(self, index):
        while not self._ended.wait(LOOK_EVERY):
            try:
                with urllib.request.urlopen(f"http://{self._servers[index][1]}/readyz", timeout=2) as response:
                    ready = response.status == 200
            except (urllib.error.URLError, OSError):
                ready = False
            if ready != self._ready[index] and not self._ended.wait(self._lag):
                self._ready[index] = ready

    def _run(self):
        asyncio.set_event_loop(self._loop)

        async def listen():
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
            self.address = "127.0.0.1:%d" % self._listener.sockets[0].getsockname()[1]
            self._started.set()

        self._loop.create_task(listen())
        self._loop.run_forever()

    async def _serve(self, reader, writer):
        ready = [index for index, ready in enumerate(self._ready) if ready]
        if not ready:
            return writer.transport.abort()
        self._turn += 1
        host, _, port = self._servers[ready[self._turn % len(ready)]][0].rpartition(":")
        try:
            other_reader, other_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return writer.transport.abort()  # to the client, it looks like a refused connection
        await asyncio.gather(self._pump(reader, other_writer), self._pump(other_reader, writer))
        writer.close()
        other_writer.close()

    @staticmethod
    async def _pump(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.transport.abort()
