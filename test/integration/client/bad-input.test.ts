import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { until } from '../../../sandbox/wait.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client, type ClientResult } from '../../support/client.ts';
import { Person } from '../../support/person.ts';

describe('drawbridge says what to do in one line', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  /** A kubeconfig with another address or another user. */
  const changed = async (
    name: string,
    from: string,
    { server, user }: { readonly server?: string; readonly user?: object },
  ): Promise<{ kubeconfig: string }> => {
    const kubeconfig = join(stage.plane.directory, 'kubeconfigs', `${name}.yaml`);
    const config = parse(await readFile(from, 'utf8'));
    if (server !== undefined) config.clusters[0].cluster.server = server;
    if (user !== undefined) config.users[0].user = user;
    await writeFile(kubeconfig, stringify(config));
    return { kubeconfig };
  };
  const assertLine = ({ code, stdout, stderr }: ClientResult, wanted: number, line: RegExp): void => {
    assert.equal(code, wanted, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, line);
    assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  };

  it('without a cluster at the address', async () => {
    const person = await changed('nowhere', stage.alice.kubeconfig, { server: 'https://127.0.0.1:9' });
    assertLine(
      await client.run(person, 'list'),
      1,
      /^drawbridge: cannot reach the cluster: .*ECONNREFUSED.*; check the network/,
    );
  });

  it('without permission', async () => {
    const eve = await Person.of(stage.plane, 'eve', ['guests']);
    assertLine(
      await client.run(eve, 'list'),
      3,
      /cannot list resource "\w+accessrequests".*; check the name of the namespace, or ask an administrator for this permission/,
    );
    assertLine(
      await client.run(eve, 'request', 'pod', 'payments-shell'),
      3,
      /cannot create resource "podaccessrequests"/,
    );
    assertLine(
      await client.run(stage.alice, 'list', '-A'),
      3,
      /use -n NAMESPACE instead of -A, or ask an administrator for this permission$/m,
    );
  });

  it('when the connection is lost while it watches', async function () {
    this.timeout(90_000);
    const proxy = await stage.plane.proxy();
    const kubeconfig = await stage.plane.kubeconfigFor('alice', ['devs'], { server: proxy.server });
    const person = { kubeconfig };
    const running = client.start(person, 'list', '-w', '--everyone', '-o', 'json');
    await client.ok(stage.alice, 'request', 'exec', 'payments-exec');
    await until('a first line', () => running.soFar().stdout !== '', { timeoutMs: 30_000 });
    proxy.refuse();
    proxy.resetAll();
    const { code, stderr } = await running.ended;
    await proxy.close();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /lost the watch: .*; this does not affect the requests; check the network/);
  });
});
