import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { listen } from '../../../src/kit/listen.ts';

describe('listen', () => {
  it('uses a free port for 0', async () => {
    const server = createServer();
    await listen(server, '127.0.0.1', 0);
    assert.ok((server.address() as AddressInfo).port > 0);
    server.close();
    await once(server, 'close');
  });

  it('names the port that is taken, with the code of a configuration error', async () => {
    const first = createServer();
    await listen(first, '127.0.0.1', 0);
    const { port } = first.address() as AddressInfo;
    await assert.rejects(listen(createServer(), '127.0.0.1', port), {
      code: 'PortUnavailable',
      message: `cannot listen on 127.0.0.1, port ${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}; set another address or port`,
    });
    first.close();
    await once(first, 'close');
  });
});
