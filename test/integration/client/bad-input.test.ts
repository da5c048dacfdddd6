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

  it('without a kubeconfig', async () => {
    const result = await client.run({ kubeconfig: '/does/not/exist' }, 'list');
    assertLine(result, 2, /^drawbridge: no cluster to connect to: .* set --kubeconfig or KUBECONFIG/);
  });

  it('with a context that does not exist', async () => {
    const result = await client.run(stage.alice, 'list', '--context', 'elsewhere');
    assertLine(result, 2, /context "elsewhere" does not exist; available contexts: /);
  });

  it('without a cluster at the address', async () => {
    const person = await changed('nowhere', stage.alice.kubeconfig, { server: 'https://127.0.0.1:9' });
    assertLine(
      await client.run(person, 'list'),
      1,
      /^drawbridge: cannot reach the cluster: .*ECONNREFUSED.*; check the network/,
    );
  });

  it('with a token that the API server does not accept', async () => {
    const person = await changed('expired', stage.alice.kubeconfig, { user: { token: 'expired' } });
    assertLine(
      await client.run(person, 'list'),
      1,
      /does not accept your credentials; they may have expired: log in again/,
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

  it('for a request or template that does not exist', async () => {
    assertLine(await client.run(stage.alice, 'get', 'none'), 1, /no request none in namespace \S+; if it has ended, /);
    assertLine(await client.run(stage.alice, 'request', 'pod', 'none'), 3, /TemplateNotFound: /);
    assertLine(await client.run(stage.alice, 'get', 'deployment/none'), 2, /write NAME, pod\/NAME, or exec\/NAME/);
  });

  it('for wrong command lines', async () => {
    assertLine(await client.run(stage.alice, 'lst'), 2, /unknown command "lst"; did you mean list\?/);
    assertLine(
      await client.run(stage.alice, 'list', '--evryone'),
      2,
      /unknown flag "--evryone"; did you mean --everyone\?/,
    );
    assertLine(
      await client.run(stage.alice, 'request', 'pod', 'x', '--for', '1d'),
      2,
      /--for: "1d" has the unknown unit "d"/,
    );
    assertLine(await client.run(stage.alice, 'list', '-o', 'xml'), 2, /--output is "xml"; it must be one of table, /);
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

  it('for a cluster without our kinds', async () => {
    // Below this path, the API server answers as one that does not serve our group.
    const { adminKubeconfig, server } = stage.plane;
    const person = await changed('other', adminKubeconfig, { server: `${server}/version` });
    assertLine(
      await client.run(person, 'templates'),
      1,
      /does not serve the kinds of drawbridge that this command needs; /,
    );
    assertLine(
      await client.run(client.admin, 'inventory', 'status'),
      1,
      /install the feature of the command \(inventory, binding, or for all others access\)/,
    );
  });
});
