import assert from 'node:assert/strict';
import { readCommandLine } from '../../../../src/client/args.ts';
import { type ClusterConnection, openConnection } from '../../../../src/client/cluster-connection.ts';
import { commands } from '../../../../src/client/commands.ts';
import { type Call, Refusal } from '../../../../src/client/console/call.ts';
import { requestPage } from '../../../../src/client/console/request-page.ts';
import type { RequestPage } from '../../../../src/client/console/wire.ts';
import { systemClock } from '../../../../src/kit/clock.ts';
import { type Fault, ScriptedCluster } from '../../../support/scripted-cluster.ts';
import { request, template } from '../objects.ts';

const event = (reason: string, fields: object) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: reason, namespace: 'web' },
  reason,
  message: `${reason} happened`,
  ...fields,
});

describe('the page of a request in the console', () => {
  let cluster: ScriptedCluster;
  let connection: ClusterConnection;
  const open = async (fault?: Fault): Promise<void> => {
    const waiting = request('a', { approval: { state: 'Pending' } }, { requester: { username: 'bob' } });
    cluster = await ScriptedCluster.open(
      {
        podaccessrequests: [{ ...waiting, metadata: { ...waiting.metadata, namespace: 'web' } }],
        podaccesstemplates: [template({ approvals: { all: [{ name: 'peer' }] } })],
      },
      fault,
    );
    const { args } = readCommandLine(['show', 'a'], commands);
    const note = (): void => undefined;
    connection = await openConnection({
      args,
      clock: systemClock,
      kubeconfigPaths: cluster.kubeconfig,
      program: 'drawbridge',
      note,
    });
  };
  afterEach(async () => {
    await connection.cluster.close();
    await cluster.close();
  });
  const read = (query: Record<string, string> = {}): Promise<RequestPage> => {
    const given = { namespace: 'web', kind: 'PodAccessRequest', name: 'a', ...query };
    return requestPage({ connection, query: new URLSearchParams(given) } as Call, systemClock);
  };
  const forbidden =
    (what: string): Fault =>
    ({ path }, answer) => {
      if (!path.endsWith(what)) return false;
      answer.status(403, 'Forbidden');
      return true;
    };

  it('has what show prints, the version of the template, and the row', async () => {
    await open();
    const { row, sections, templateVersion } = await read();
    assert.deepEqual(
      sections.map(({ title }) => title),
      ['', 'What it opens', 'Other requests of this person through this template (deleted ones are not listed)'],
    );
    const entries = Object.fromEntries(sections.flatMap((section) => section.entries));
    assert.deepEqual(
      [entries['Name'], entries['Must approve']],
      [['pod/a'], ['peer: 1 with the verb approve on shell']],
    );
    assert.deepEqual(entries['Approve this'], ['drawbridge approve pod/a -n web --template-version 3.5f2c9a1b']);
    assert.equal(entries['Link'], undefined);
    assert.deepEqual([templateVersion, row.key, row.choice], ['3.5f2c9a1b', 'web/PodAccessRequest/a', 'approve, deny']);
  });

  it('has the newest hundred Events, oldest first', async () => {
    const many = Array.from({ length: 101 }, (_, index) =>
      event(`E${index}`, { lastTimestamp: new Date(Date.UTC(2026, 10, 21, 0, index)).toISOString() }),
    );
    let selector: string | null = '';
    await open(({ path, query }, answer) => {
      if (path !== '/api/v1/namespaces/web/events') return false;
      selector = query.get('fieldSelector');
      answer.list('7', [event('Last', { eventTime: '2026-11-22T00:00:00.000000Z' }), ...many]);
      return true;
    });
    const { events } = await read();
    assert.equal(selector, 'involvedObject.uid=uid-a');
    assert.deepEqual([events.length, events[0]?.reason, events.at(-1)?.reason], [100, 'E2', 'Last']);
    assert.equal(events[0]?.message, 'E2 happened');
  });

  it('does without Events that the user may not read', async () => {
    await open(forbidden('/events'));
    assert.deepEqual((await read()).events, []);
  });

  it('says that the user may not read the template', async () => {
    await open(forbidden('/podaccesstemplates/shell'));
    const { sections, templateVersion } = await read();
    const entries = Object.fromEntries(sections.flatMap((section) => section.entries));
    assert.deepEqual(entries['Not shown'], ['the template shell does not exist, or you may not read it']);
    assert.equal(templateVersion, '');
  });

  it('refuses with 404 a request that does not exist, and says how to find it', async () => {
    await open();
    await assert.rejects(read({ name: 'b' }), (error) => {
      assert.ok(error instanceof Refusal && error.status === 404);
      assert.match(error.message, /no request pod\/b in namespace web; if it has ended/);
      return true;
    });
  });

  it('refuses what names no request', async () => {
    await open();
    for (const query of [{ kind: 'Secret' }, { name: '' }, { namespace: '' }] as Record<string, string>[])
      await assert.rejects(read(query), (error) => error instanceof Refusal && error.status === 400);
  });
});
