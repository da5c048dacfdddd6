import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commands } from '../../../src/client/commands.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { letApprove } from '../../support/approvers.ts';
import { Client } from '../../support/client.ts';

const names = ['alice', 'bob', 'carol'] as const;
type Name = (typeof names)[number];
/** The exit code, and what the command prints on standard output and error together. */
type Answer = readonly [code: number, text: RegExp];

interface Step extends Record<Name, Answer> {
  /** The command of the table that it tests. */
  readonly command: string;
  /** What follows the command. `NAME` is the person, `OTHER` one whose requests the person decides about, `JOURNAL` and `MANIFEST` are files, `SESSION` is a session. */
  readonly line?: string;
}

const everyone = (answer: Answer): Record<Name, Answer> => ({ alice: answer, bob: answer, carol: answer });
const notEligible: Answer = [3, /^drawbridge: denied: NotEligible: .*user bob is in \[qa, /];
const needsPermission: Answer = [3, /^drawbridge: denied: .* is forbidden: User "\w+" cannot .*; ask an administrator/];
const needsAuditor: Answer = [3, /^drawbridge: denied: .*drawbridge-session-auditor/];
const requested = (kind: string, name: string): RegExp =>
  new RegExp(`^created ${kind}accessrequest\\.\\S+/${name}$`, 'm');

/** In this order: alice and carol request, carol approves alice, who uses the access; then all of it ends. */
const steps: readonly Step[] = [
  { command: 'version', ...everyone([0, /^drawbridge \S+\nKubernetes v1\.\d+\.\d+/]) },
  { command: 'help codes', ...everyone([0, /^CODE +MEANING +TO DO$[\s\S]*^NotEligible /m]) },
  { command: 'explain-code', line: 'noteligible', ...everyone([0, /^Code: +NotEligible$/m]) },
  { command: 'templates new', ...everyone([0, /^kind: PodAccessTemplate$/m]) },
  { command: 'completion', line: 'bash', ...everyone([0, /^complete -F _drawbridge drawbridge$/m]) },
  {
    command: 'templates',
    ...everyone([0, /^payments-shell +pod +true +1h, max 4h, 8h with extensions +devs, sre +peer: 1 of group devs$/m]),
  },
  {
    command: 'explain',
    line: 'payments-shell --for 30m',
    alice: [0, /^pass +\d+ rules\b/m],
    bob: [3, /^fail +eligible +join one of \[devs, sre\]$/m],
    carol: [0, /^pass +\d+ rules\b/m],
  },
  {
    command: 'check',
    line: '-f MANIFEST',
    alice: [0, /^PodAccessRequest\/check- +pass +\d+ rules\b/m],
    bob: [3, /^PodAccessRequest\/check- +fail +eligible +join one of \[devs, sre\]$/m],
    carol: [0, /^PodAccessRequest\/check- +pass +\d+ rules\b/m],
  },
  {
    command: 'approvers',
    line: 'payments-shell',
    ...everyone([
      0,
      /^needed: peer: 1 of group devs$[\s\S]*^not checked: who can approve, because you may not read the RoleBindings /m,
    ]),
  },
  {
    command: 'request pod',
    line: 'payments-shell --name pod-NAME --for 30m --reason INC-42 --no-wait',
    alice: [0, requested('pod', 'pod-alice')],
    bob: notEligible,
    carol: [0, requested('pod', 'pod-carol')],
  },
  {
    command: 'request exec',
    line: 'payments-exec --name exec-NAME --for 10m',
    alice: [0, /access is open until \S+ [\s\S]*^kubectl exec -ti -n \S+ payments-\S+ -- \/bin\/sh$/m],
    bob: notEligible,
    carol: [0, /access is open until \S+ [\s\S]*^kubectl exec -ti -n \S+ payments-\S+ -- \/bin\/sh$/m],
  },
  {
    command: 'list',
    alice: [0, /^(?![\s\S]*-carol )[\s\S]*^exec-alice +exec +payments-exec +Open /m],
    bob: [0, /^you \(bob\) have no requests in namespace (\S+); to request .*: drawbridge list --everyone -n \1$/m],
    carol: [0, /^(?![\s\S]*-alice )[\s\S]*^exec-carol +exec +payments-exec +Open /m],
  },
  { command: 'get', line: 'pod-alice', ...everyone([0, /^Reason: +INC-42$[\s\S]*^State: +Waiting$/m]) },
  {
    command: 'pending',
    alice: [
      0,
      /^(?![\s\S]*pod-alice)[\s\S]*^pod-carol +pod +payments-shell +carol +Access +30m +\S+Z +approve, deny +INC-42$/m,
    ],
    bob: [0, /^no request waits for you in namespace [^\s;]+$/m],
    carol: [
      0,
      /^(?![\s\S]*pod-carol)[\s\S]*^pod-alice +pod +payments-shell +alice +Access +30m +\S+Z +approve, deny +INC-42$/m,
    ],
  },
  { command: 'show', line: 'pod-alice', ...everyone([0, /^Must approve: +peer: 1 of group devs$/m]) },
  {
    command: 'approve',
    line: 'pod-alice --reason checked',
    alice: [3, /^drawbridge: denied: SelfApproval: /],
    bob: needsPermission,
    carol: [0, /\/pod-alice approved$/m],
  },
  {
    command: 'deny',
    line: 'pod-carol --reason staging',
    alice: [0, /\/pod-carol denied$/m],
    bob: needsPermission,
    carol: [3, /^drawbridge: denied: SelfApproval: /],
  },
  {
    command: 'claim',
    line: 'pod-alice',
    alice: [0, /access is open until \S+ \(in (30m|2[89]m(\d+s)?)\)$[\s\S]*^kubectl exec -ti /m],
    bob: [3, /^drawbridge: denied: /],
    carol: [3, /^drawbridge: denied: /],
  },
  { command: 'watch', line: 'pod-alice', ...everyone([0, /^access is open until \S+ /m]) },
  {
    command: 'exec',
    line: 'pod-alice -- echo hello',
    alice: [0, /^hello$/m],
    bob: [1, /cannot create resource "pods\/exec"/],
    carol: [1, /cannot create resource "pods\/exec"/],
  },
  {
    command: 'use',
    line: 'pod-alice',
    ...everyone([
      1,
      /^drawbridge: pod-alice lets you call the API server directly, without a context: kubectl get pod \S+ -n /,
    ]),
  },
  {
    command: 'extend',
    line: 'pod-alice --by 5m --reason logs',
    alice: [0, /\/pod-alice extended until \S+Z$/m],
    bob: [3, /^drawbridge: denied: /],
    carol: [3, /^drawbridge: denied: /],
  },
  { command: 'who', ...everyone([0, /^alice +Open +pod\/pod-alice +pod-alice-\S+ +\S+Z +carol +INC-42$/m]) },
  {
    command: 'revoke',
    line: 'exec-OTHER --reason finished',
    alice: [0, /\/exec-carol of carol: revocation requested; /],
    bob: [1, /^drawbridge: no request exec-bob /],
    carol: [0, /\/exec-alice of alice: revocation requested; /],
  },
  { command: 'revoke', line: '--user OTHER -A', ...everyone(needsPermission) },
  {
    command: 'revoke',
    line: 'pod-NAME --reason thanks',
    alice: [0, /\/pod-alice revocation requested; the server closes the access$/m],
    bob: [1, /^drawbridge: no request pod-bob /],
    carol: [3, /^drawbridge: pod-carol was denied: .*; to delete it: kubectl delete podaccessrequest pod-carol /],
  },
  {
    command: 'audit report',
    line: 'JOURNAL',
    ...everyone([0, /^\S+Z +\S+ +\S+ +alice +\S+ +payments-shell +pod-alice-\S+ +carol +INC-42 +alice +-$/m]),
  },
  // gateway/recordings.test.ts and health.test.ts test the success of these as an administrator.
  { command: 'audit verify', line: 'JOURNAL -n drawbridge-system', ...everyone([2, /cannot/]) },
  // gateway/live.test.ts and gateway/access-sessions.test.ts test the success of these.
  { command: 'sessions list', ...everyone(needsAuditor) },
  { command: 'sessions tail', line: 'SESSION', ...everyone(needsAuditor) },
  { command: 'sessions play', line: 'SESSION', ...everyone(needsAuditor) },
  { command: 'sessions kill', line: 'SESSION', ...everyone(needsAuditor) },
  // Its tests open it: it runs until Ctrl-C.
  {
    command: 'console',
    line: '--port 70000',
    ...everyone([2, /--port is "70000"; it must be a number from 0 to 65535/]),
  },
  // client/notify.test.ts tests the success of this.
  { command: 'notify test', line: 'chat', ...everyone(needsPermission) },
  { command: 'binding status', ...everyone(needsPermission) },
  { command: 'inventory status', ...everyone(needsPermission) },
  { command: 'inventory why', line: 'prod', ...everyone(needsPermission) },
  {
    command: 'doctor',
    line: '-n drawbridge-system',
    ...everyone([1, /^webhooks +not checked +needs a permission: /m]),
  },
];

describe('alice, bob, and carol use drawbridge', () => {
  let stage: AccessStage;
  let client: Client;
  let mark: number;
  let manifest: string;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
    const approvals = { all: [{ name: 'peer', groups: ['devs'] }], claimWithin: '1h' };
    const accessConfig = { approvals, extension: { times: 2, total: '8h', approvals: 'None' } };
    const patch = JSON.stringify({ spec: { accessConfig } });
    await stage.kubectl('patch', 'pat', 'payments-shell', '--type=merge', '-p', patch);
    await stage.templateReady('PodAccessTemplate', 'payments-shell');
    await letApprove(stage, 'alice', 'carol');
    const kind = { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind: 'PodAccessRequest' };
    const spec = { templateName: 'payments-shell', duration: '30m' };
    manifest = join(stage.plane.directory, 'check.yaml');
    await writeFile(manifest, JSON.stringify({ ...kind, metadata: { generateName: 'check-' }, spec }));
    mark = stage.plane.auditLog.mark();
  });
  after(() => stage?.close());

  const others: Record<Name, Name> = { alice: 'carol', carol: 'alice', bob: 'bob' };
  const answers = async (name: Name, { command, line = '', [name]: [code, text] }: Step): Promise<void> => {
    const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
    const words = line
      .replaceAll('SESSION', session)
      .replaceAll('NAME', name)
      .replaceAll('OTHER', others[name])
      .split(' ');
    const files: Readonly<Record<string, string>> = { JOURNAL: stage.server.auditFile, MANIFEST: manifest };
    const args = words.map((word) => files[word] ?? word);
    const found = await client.run(stage[name], ...command.split(' '), ...args.filter((arg) => arg !== ''));
    const output = `${found.stderr}${found.stdout}`;
    assert.equal(found.code, code, `${name}: ${output}`);
    assert.match(output, text, `${name}: ${output}`);
  };

  it('with every command', () => {
    assert.deepEqual([...new Set(steps.map(({ command }) => command))].sort(), commands.map(({ name }) => name).sort());
  });

  for (const step of steps) {
    it([step.command, step.line ?? ''].join(' ').trim(), async () => {
      // First those who fail, because the others change what they see.
      for (const succeed of [false, true]) {
        const who = names.filter((name) => (step[name][0] === 0) === succeed);
        await Promise.all(who.map((name) => answers(name, step)));
      }
    });
  }

  /** What the person wrote in the namespace, in order; the kinds of which people write objects. */
  const written: Record<Name, readonly (readonly [operation: string, kind: string, name: string])[]> = {
    alice: [
      ['create', 'PodAccessRequest', 'pod-alice'],
      ['create', 'ExecAccessRequest', 'exec-alice'],
      ['create', 'AccessVote', ''],
      ['update', 'PodAccessRequest', 'pod-alice'],
      ['update', 'PodAccessRequest', 'pod-alice'],
      ['update', 'ExecAccessRequest', 'exec-carol'],
      ['update', 'PodAccessRequest', 'pod-alice'],
    ],
    bob: [],
    carol: [
      ['create', 'PodAccessRequest', 'pod-carol'],
      ['create', 'ExecAccessRequest', 'exec-carol'],
      ['create', 'AccessVote', ''],
      ['update', 'ExecAccessRequest', 'exec-alice'],
    ],
  };

  it('and the audit log of the API server names who called, never the server', () => {
    const resources = ['podaccessrequests', 'execaccessrequests', 'accessvotes'];
    const verbs = ['create', 'update', 'patch', 'delete'];
    const writes = stage.plane.auditLog
      .calls({ since: mark, verbs, resources })
      .filter(({ namespace, code, uri }) => namespace === stage.namespace && code < 300 && !uri.includes('dryRun'));
    const by = (caller: string): string[] =>
      writes.filter(({ user }) => user === caller).map(({ verb, resource, name }) => `${verb} ${resource} ${name}`);
    for (const name of names) {
      const wanted = written[name].map(
        ([operation, kind, object]) =>
          `${operation === 'update' ? 'patch' : operation} ${kind.toLowerCase()}s ${object}`,
      );
      assert.deepEqual(by(name), wanted, name);
    }
    // The server ends requests. It creates none, and no votes.
    const { serverUser } = stage.server.installation;
    assert.deepEqual(
      by(serverUser).filter((line) => line.startsWith('create')),
      [],
    );
    const callers = new Set(writes.map(({ user }) => user));
    assert.deepEqual([...callers].sort(), ['alice', 'carol', serverUser]);
  });

  it('and the journal names who called, never the server', async () => {
    const lines = await stage.audit(({ what }) => what.namespace === stage.namespace);
    const dryRuns = /^(payments|check)-/;
    for (const name of names) {
      const found = lines
        .filter(({ event, verdict, who }) => event === 'admission' && verdict === 'allowed' && who.user === name)
        .filter(({ what }) => !dryRuns.test(what.name ?? ''))
        .map(({ what }) => [what.operation.toLowerCase(), what.kind, what.kind === 'AccessVote' ? '' : what.name]);
      assert.deepEqual(found, written[name], name);
    }
    const entered = lines.filter(({ event, verdict }) => event === 'exec' && verdict === 'allowed');
    assert.deepEqual(
      entered.map(({ who }) => who.user),
      ['alice'],
    );
    const grants = lines.filter(({ verdict }) => verdict === 'granted');
    assert.deepEqual(grants.map(({ who, what }) => `${who.user} ${what.name}`).sort(), [
      'alice exec-alice',
      'alice pod-alice',
      'carol exec-carol',
    ]);
  });
});
