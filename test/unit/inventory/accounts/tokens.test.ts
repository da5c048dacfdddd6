import assert from 'node:assert/strict';
import { serviceAccounts } from '../../../../src/api/resources.ts';
import { DryRunProof } from '../../../../src/inventory/accounts/dry-run-proof.ts';
import { EntryAccounts } from '../../../../src/inventory/accounts/entry-accounts.ts';
import { credentialIdOf, RunTokens, tokenReader } from '../../../../src/inventory/accounts/tokens.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import type { WriteOptions } from '../../../../src/kube/client.ts';
import { ApiError, TransportError } from '../../../../src/kube/errors.ts';
import { noLog } from '../../../../src/observe/log.ts';
import { MemoryAccess } from '../../../support/inventory/memory-access.ts';

const network = { name: 'network', kubeconfig: 'none' } as Registration;
const { signal } = new AbortController();
const payloadOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());

function stage() {
  const world = new MemoryAccess();
  const { client, clock } = world;
  const accounts = new EntryAccounts({ client, events: world.recorder, clock });
  const tokens = new RunTokens({ client, accounts, homeNamespace: 'drawbridge-system', clock });
  return { world, accounts, tokens, entry: world.entry() };
}

describe('the token of a run', () => {
  it('is of the account for this entry, ends after ten minutes, and its id is known before anybody has it', async () => {
    const { world, tokens, entry } = stage();
    const { token, id, expiresAtMs } = await tokens.forRun(entry, network, signal);
    assert.deepEqual(payloadOf(token), { sub: `inventory-${entry.ref.uid}.network`, aud: ['api'], n: 1, jti: 'id-1' });
    assert.deepEqual([id, expiresAtMs - world.clock.now()], ['JTI=id-1', 600_000]);
    assert.equal((await tokens.forRun(entry, network, signal)).id, 'JTI=id-2');
  });

  it('is had though somebody has deleted the account', async () => {
    const { world, tokens, entry } = stage();
    await tokens.forRun(entry, network, signal);
    world.cluster.drop(serviceAccounts, { namespace: 'fleet', name: `inventory-${entry.ref.uid}.network` });
    assert.equal((await tokens.forRun(entry, network, signal)).id, 'JTI=id-2');
  });

  it('is not had, and nothing is made again, when all of the entry is withdrawn meanwhile', async () => {
    const { world, accounts, entry } = stage();
    let asked = 0;
    const createToken = async (): Promise<never> => {
      asked += 1;
      if (asked === 1) await accounts.withdraw(entry.ref, signal);
      throw new ApiError(404, 'NotFound', 'no such account');
    };
    const client = { ...world.client, createToken };
    const tokens = new RunTokens({ client, accounts, homeNamespace: 'drawbridge-system', clock: world.clock });
    await assert.rejects(tokens.forRun(entry, network, signal), { code: 404 });
    assert.deepEqual(world.cluster.list(serviceAccounts), []);
  });

  it('is not used when it has no id', async () => {
    const { world, tokens, entry } = stage();
    world.jti = undefined;
    await assert.rejects(tokens.forRun(entry, network, signal), { code: 'NoCredentialId' });
  });

  for (const odd of ['', 'x', 'a.b.c', `a.${Buffer.from('{"jti": 7}').toString('base64url')}.c`, 'a..c']) {
    it(`has no id when it is "${odd}"`, () => assert.throws(() => credentialIdOf(odd), { code: 'NoCredentialId' }));
  }
});

describe('the token of a call', () => {
  it('is for one component, and shared until near its end', async () => {
    const { world, tokens } = stage();
    const [first, same, other] = await Promise.all([
      tokens.forCall('network'),
      tokens.forCall('network'),
      tokens.forCall('cluster'),
    ]);
    assert.equal(first, same);
    assert.deepEqual([payloadOf(first).aud, payloadOf(other).aud], [['drawbridge/network'], ['drawbridge/cluster']]);
    await world.clock.advance(419_000);
    assert.equal(await tokens.forCall('network'), first);
    await world.clock.advance(2_000);
    assert.notEqual(await tokens.forCall('network'), first);
    assert.equal(world.tokens, 3);
  });
});

describe('whose token it is', () => {
  const user = { username: 'system:serviceaccount:fleet:a', uid: '', groups: [] };
  const key = 'authentication.kubernetes.io/credential-id';
  const cases: [string, string, Record<string, readonly string[]> | undefined, unknown][] = [
    ['one that is good', 'good', { [key]: ['JTI=1'] }, { account: user.username, credentialId: 'JTI=1' }],
    ['one that is not', 'bad', undefined, undefined],
    ['one without an id', 'good', {}, undefined],
    ['one with two', 'good', { [key]: ['JTI=1', 'JTI=2'] }, undefined],
  ];
  for (const [what, token, extra, expected] of cases) {
    it(`is said of ${what}: ${JSON.stringify(expected)}`, async () => {
      const world = new MemoryAccess();
      if (extra) world.users.set(token, { ...user, extra });
      assert.deepEqual(await tokenReader(world.client).read(token, signal), expected);
    });
  }

  it('is not asked about what is no token', async () => {
    const world = new MemoryAccess();
    for (const odd of ['', 'a b', 'ä', 'x'.repeat(16_385), 'a\nb']) {
      assert.equal(await tokenReader(world.client).read(odd, signal), undefined);
    }
    assert.deepEqual(world.reviewed, []);
  });
});

describe('the proof that writes are fenced', () => {
  const refusal = (message: string, code = 403) => new ApiError(code, 'Forbidden', message);
  const taken = 'taken';
  const noRun = 'admission webhook "fence" denied the request: NoSuchRun: there is no run';

  async function prove(answers: (ApiError | undefined)[], has: (entry: Entry) => Entry[] = (entry) => [entry]) {
    const { world, accounts, tokens, entry } = stage();
    world.cluster.put(serviceAccounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { namespace: 'fleet', name: `inventory-${taken}.0-proof` },
    });
    world.cluster.fault = ({ verb, name }) => {
      if (verb === 'create' && name.startsWith('without-rights/')) throw refusal('cannot create');
    };
    const asked: (WriteOptions | undefined)[] = [];
    const proof = new DryRunProof({
      entries: () => has(entry),
      accounts,
      tokens,
      clientWith: () => ({
        client: {
          ...world.client,
          mergePatch: async (_resource, _name, _patch, options) => {
            asked.push(options);
            const answer = answers.shift();
            if (answer) throw answer;
            return { apiVersion: '', kind: '', metadata: { name: 'x' } };
          },
        },
        close: async () => {},
      }),
      clock: world.clock,
      log: noLog,
    });
    const aborter = new AbortController();
    const proving = proof.prove(aborter.signal);
    for (let step = 0; step < 40; step++) await world.clock.advance(100);
    const { proved } = proof;
    aborter.abort(new Error('enough'));
    await proving;
    const left = world.cluster.list(serviceAccounts).filter(({ metadata }) => !metadata.name.includes(taken));
    return { proved, asked, accounts: left.length };
  }

  it('is a dry run that is refused with our own code, and leaves no account', async () => {
    const { proved, asked, accounts } = await prove([refusal(noRun)]);
    assert.deepEqual([proved, accounts], [true, 0]);
    assert.deepEqual(
      asked.map((options) => [options?.dryRun, options?.subresource]),
      [[true, 'status']],
    );
  });

  it('is not a write that is let through, or refused by others', async () => {
    const others = [refusal('cannot patch resource'), refusal(`failed calling webhook: ${noRun}`, 500)];
    assert.equal((await prove([undefined, ...others, ...others])).proved, false);
  });

  it('is tried again', async () => {
    assert.equal((await prove([undefined, refusal('no route'), refusal(noRun)])).proved, true);
  });

  it('is found at another entry when we cannot work with the first one, in its namespace or anywhere', async () => {
    const at = (entry: Entry, namespace: string, uid: string) => ({ ...entry, ref: { namespace, name: uid, uid } });
    const { proved, accounts } = await prove([refusal(noRun)], (entry) => [
      ...Array.from({ length: 1_000 }, (_, index) => at(entry, 'without-rights', `w-${index}`)),
      at(entry, 'fleet', taken),
      entry,
    ]);
    assert.deepEqual([proved, accounts], [true, 0]);
  });

  for (const [what, error, least, most] of [
    ['slows down while the API server issues no tokens, however many entries there are', refusal('away', 503), 10, 20],
    ['slows down while it asks too much', refusal('too many requests', 429), 10, 20],
    ['slows down while nothing answers', new TransportError('connection refused', undefined, true), 10, 20],
    ['goes on to the next entry after a refusal that is about one', refusal('cannot create'), 590, 610],
  ] as const) {
    it(what, async () => {
      const { world, accounts, entry } = stage();
      let tries = 0;
      let isRefused = true;
      const entries = Array.from({ length: 1_000 }, (_, i) => ({ ...entry, ref: { ...entry.ref, uid: `u-${i}` } }));
      const proof = new DryRunProof({
        entries: () => entries,
        accounts,
        tokens: {
          forAccount: async () => {
            tries += 1;
            if (isRefused) throw error;
            return { id: 'JTI=1', token: 't', expiresAtMs: 0 };
          },
        },
        clientWith: () => ({
          client: { ...world.client, mergePatch: () => Promise.reject(refusal(noRun)) },
          close: async () => {},
        }),
        clock: world.clock,
        log: noLog,
      });
      const aborter = new AbortController();
      const proving = proof.prove(aborter.signal);
      for (let step = 0; step < 3_000; step++) await world.clock.advance(100);
      assert.ok(tries >= least && tries <= most, `${tries} tries in 5 minutes`);
      isRefused = false;
      for (let step = 0; step < 310; step++) await world.clock.advance(100);
      assert.equal(proof.proved, true);
      aborter.abort(new Error('enough'));
      await proving;
    });
  }

  it('waits for an entry, which may be on its way out', async () => {
    const none = await prove([refusal(noRun)], () => []);
    assert.deepEqual([none.proved, none.asked], [false, []]);
    const going = await prove([refusal(noRun)], (entry) => [{ ...entry, deleting: true }]);
    assert.deepEqual([going.proved, going.asked.length], [true, 1]);
  });
});
