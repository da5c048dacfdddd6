import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { parse, stringify } from 'yaml';
import { call } from '../../../examples/inventory/components/sdk/http.ts';
import { componentReconcilers } from '../../../src/api/inventory/names.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { sharedPlane } from '../../support/plane.ts';

/** A name that only the proxy resolves. */
const apiUrl = 'https://apiserver.invalid:6443';

describe('the inventory with a kubeconfig that has a proxy-url', function () {
  this.timeout(180_000);
  const proxy = createServer();
  const sockets = new Set<Socket>();
  let stage: InventoryStage;

  before(async () => {
    const plane = await sharedPlane();
    proxy.on('connect', (call, client: Socket) => {
      assert.equal(call.url, new URL(apiUrl).host);
      const upstream = connect(Number(new URL(plane.server).port), '127.0.0.1');
      for (const [from, to] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(from);
        from.on('error', () => to.destroy());
      }
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(upstream).pipe(client);
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const kubeconfig = await plane.kubeconfigFor('server-behind-proxy', ['system:masters'], { server: apiUrl });
    const content = parse(await readFile(kubeconfig, 'utf8')) as { clusters: { cluster: object }[] };
    const added = {
      'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      'tls-server-name': 'localhost',
    };
    for (const { cluster } of content.clusters) Object.assign(cluster, added);
    await writeFile(kubeconfig, stringify(content), { mode: 0o600 });
    stage = await InventoryStage.open([`--kubeconfig=${kubeconfig}`, `--component-api-url=${apiUrl}`]);
  });
  after(async () => {
    await stage?.close();
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });

  it('proves write authorization, and runs a component, which reads the entry with the token of its run', async () => {
    const { client } = stage.cluster;
    const name = 'network';
    const ca = stage.plane.authority.certificate;
    await stage.component(name, async ({ entry, auth }) => {
      assert.ok(entry.url.startsWith(`${apiUrl}/`), entry.url);
      const url = new URL(entry.url.replace(apiUrl, stage.plane.server));
      assert.equal((await call({ method: 'GET', url, token: auth.token, tls: { ca } })).status, 200);
      return { outcome: 'NotReady', missing: [{ path: '/spec/cluster/region', want: 'present' }] };
    });
    await stage.entry('one');
    const state = async () => (await stage.get('one')).components[0]?.state;
    await stage.until('the outcome', async () => (await state()) === 'NotReady');
    await stage.patch('one', { metadata: { annotations: { 'abandon.inventory.drawbridge.dev/network': 'test' } } });
    await stage.until('the end of the run', async () => (await stage.records()).length === 0);
    await client.delete(componentReconcilers, { name });
  });
});
