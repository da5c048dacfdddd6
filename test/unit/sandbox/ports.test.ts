import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { freePorts, partOfPorts } from '../../../sandbox/ports.ts';

describe('freePorts', () => {
  it('returns different ports, and none again in the next call', async () => {
    const ports = [...(await freePorts(5)), ...(await freePorts(5))];
    assert.equal(new Set(ports).size, 10);
  });

  it('returns no port that the kernel may assign to a connection', async () => {
    for (const port of await freePorts(10)) assert.ok(port >= 20_000 && port < 32_768, `${port}`);
  });

  it('divides them among processes that run at the same time', () => {
    assert.deepEqual(
      [0, 1, 2].map((index) => partOfPorts(index, 3)),
      ['20000-24255', '24256-28511', '28512-32767'],
    );
  });

  it('omits a port on which a program listens', async () => {
    const [port = 0] = await freePorts(1);
    const server = createServer();
    // If listen fails, another program has the port, which serves the test as well.
    await new Promise((resolve) =>
      server.once('error', resolve).listen(port + 1, '127.0.0.1', () => resolve(undefined)),
    );
    assert.ok(!(await freePorts(3)).includes(port + 1));
    await new Promise((resolve) => server.close(resolve));
  });
});
