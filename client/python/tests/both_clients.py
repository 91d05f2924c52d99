"""Client and AsyncClient with one interface, for tests of their common behaviour."""

import asyncio

import numpy as np

import quantd

X = np.ones(4, np.float32)


class Sync:
    """A client, and its kinds of calls."""

    def __init__(self, address, **options):
        self._client = quantd.Client(address, timeout=30, **options)

    def quantize(self):
        return self._client.quantize(X, 1.0).y.tolist()

    def info(self):
        return self._client.info().version

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._client.close()


class Async:
    """The same for an AsyncClient."""

    def __init__(self, address, **options):
        self._loop = asyncio.new_event_loop()
        try:
            self._client = self._wait(self._make(address, options))
        except BaseException:
            self._loop.close()
            raise

    def _wait(self, coroutine):
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, 60))

    async def _make(self, address, options):
        return quantd.AsyncClient(address, timeout=30, **options)

    async def _quantize(self):
        return (await self._client.quantize(X, 1.0)).y.tolist()

    async def _info(self):
        return (await self._client.info()).version

    def quantize(self):
        return self._wait(self._quantize())

    def info(self):
        return self._wait(self._info())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._wait(self._client.close())
        self._loop.close()
