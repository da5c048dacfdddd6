import assert from 'node:assert/strict';
import { serviceAccounts } from '../../../../src/api/resources.ts';
import { DryRunProof } from '../../../../src/inventory/accounts/dry-run-proof.ts';
import { EntryAccounts } from '../../../../src/inventory/accounts/entry-accounts.ts';
import { credentialIdOf, RunTokens, tokenReader } from '../../../../src/inventory/accounts/tokens.ts';
import type { Entry } from '../../../../src/inventory/entry.ts';
import type { Registration } from '../../../../src/inventory/registration.ts';
import type { Client, WriteOptions } from '../../../../src/kube/client.ts';
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
  it('belongs to the account for this entry, expires after ten minutes, and has a known ID before use', async () => {
    const { world, tokens, entry } = stage();
    const { token, id, expiresAtMs } = await tokens.forRun(entry, network, signal);
    assert.deepEqual(payloadOf(token), { sub: `inventory-${entry.ref.uid}.network`, aud: ['api'], n: 1, jti: 'id-1' });
    assert.deepEqual([id, expiresAtMs - world.clock.now()], ['JTI=id-1', 600_000]);
    assert.equal((await tokens.forRun(entry, network, signal)).id, 'JTI=id-2');
  });

  it('is issued after another client deleted the account', async () => {
    const { world, tokens, entry } = stage();
    await tokens.forRun(entry, network, signal);
    world.cluster.drop(serviceAccounts, { namespace: 'fleet', name: `inventory-${entry.ref.uid}.network` });
    assert.equal((await tokens.forRun(entry, network, signal)).id, 'JTI=id-2');
  });

  it('is not issued, and nothing is recreated, if the access is withdrawn meanwhile', async () => {
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

  it('is rejected without an ID', async () => {
    const { world, tokens, entry } = stage();
    world.jti = undefined;
    await assert.rejects(tokens.forRun(entry, network, signal), { code: 'NoCredentialId' });
  });

  for (const odd of ['', 'x', 'a.b.c', `a.${Buffer.from('{"jti": 7}').toString('base64url')}.c`, 'a..c']) {
    it(`has no ID if it is "${odd}"`, () => assert.throws(() => credentialIdOf(odd), { code: 'NoCredentialId' }));
  }
});

describe('the token of a call', () => {
  it('is for one component, and shared until shortly before it expires', async () => {
    const { world, tokens } = stage();
    const [first, same, other] = await Promise.all([
      tokens.forCall('network', signal),
      tokens.forCall('network', signal),
      tokens.forCall('cluster', signal),
    ]);
    assert.equal(first, same);
    assert.deepEqual([payloadOf(first).aud, payloadOf(other).aud], [['drawbridge/network'], ['drawbridge/cluster']]);
    await world.clock.advance(419_000);
    assert.equal(await tokens.forCall('network', signal), first);
    await world.clock.advance(2_000);
    assert.notEqual(await tokens.forCall('network', signal), first);
    assert.equal(world.tokens, 3);
  });

  it('keeps no caller waiting after its abort, and reaches the others', async () => {
    const { world, accounts } = stage();
    const answer = Promise.withResolvers<void>();
    const createToken: Client['createToken'] = async (...request) => {
      await answer.promise;
      return world.client.createToken(...request);
    };
    const client = { ...world.client, createToken };
    const tokens = new RunTokens({ client, accounts, homeNamespace: 'drawbridge-system', clock: world.clock });
    const abort = new AbortController();
    const aborted = tokens.forCall('network', abort.signal);
    const waiting = tokens.forCall('network', signal);
    abort.abort(new Error('lost the lease'));
    await assert.rejects(aborted, /lost the lease/);
    await assert.rejects(tokens.forCall('network', abort.signal), /lost the lease/);
    answer.resolve();
    assert.equal(await tokens.forCall('network', signal), await waiting);
    assert.equal(world.tokens, 1);
  });
});

describe('authentication of a token', () => {
  const user = { username: 'system:serviceaccount:fleet:a', uid: '', groups: [] };
  const key = 'authentication.kubernetes.io/credential-id';
  const cases: [string, string, Record<string, readonly string[]> | undefined, unknown][] = [
    ['a valid token', 'good', { [key]: ['JTI=1'] }, { account: user.username, credentialId: 'JTI=1' }],
    ['an invalid token', 'bad', undefined, undefined],
    ['a token without an ID', 'good', {}, undefined],
    ['a token with two IDs', 'good', { [key]: ['JTI=1', 'JTI=2'] }, undefined],
  ];
  for (const [what, token, extra, expected] of cases) {
    it(`yields ${JSON.stringify(expected)} for ${what}`, async () => {
      const world = new MemoryAccess();
      if (extra) world.users.set(token, { ...user, extra });
      assert.deepEqual(await tokenReader(world.client).read(token, signal), expected);
    });
  }

  it('sends no TokenReview for malformed tokens', async () => {
    const world = new MemoryAccess();
    for (const odd of ['', 'a b', 'ä', 'x'.repeat(16_385), 'a\nb']) {
      assert.equal(await tokenReader(world.client).read(odd, signal), undefined);
    }
    assert.deepEqual(world.reviewed, []);
  });
});

describe('the proof of write authorization', () => {
  const refusal = (message: string, code = 403) => new ApiError(code, 'Forbidden', message);
  const taken = 'taken';
  const noRun = (code = 403) =>
    new ApiError(code, 'Forbidden', 'NoSuchRun: there is no run', undefined, [
      { reason: 'NoSuchRun', message: 'NoSuchRun: there is no run' },
    ]);

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

  it('is a dry run that is rejected with NoSuchRun, and leaves no account', async () => {
    const { proved, asked, accounts } = await prove([noRun()]);
    assert.deepEqual([proved, accounts], [true, 0]);
    assert.deepEqual(
      asked.map((options) => [options?.dryRun, options?.subresource]),
      [[true, 'status']],
    );
  });

  it('is not an accepted write, nor a rejection with another code', async () => {
    const others = [refusal('cannot patch resource'), noRun(500)];
    assert.equal((await prove([undefined, ...others, ...others])).proved, false);
  });

  it('is retried', async () => {
    assert.equal((await prove([undefined, refusal('no route'), noRun()])).proved, true);
  });

  it('uses another entry if the first one is unusable, in its namespace or elsewhere', async () => {
    const at = (entry: Entry, namespace: string, uid: string) => ({ ...entry, ref: { namespace, name: uid, uid } });
    const { proved, accounts } = await prove([noRun()], (entry) => [
      ...Array.from({ length: 1_000 }, (_, index) => at(entry, 'without-rights', `w-${index}`)),
      at(entry, 'fleet', taken),
      entry,
    ]);
    assert.deepEqual([proved, accounts], [true, 0]);
  });

  for (const [what, error, least, most] of [
    ['backs off while the API server issues no tokens, however many the entries', refusal('away', 503), 10, 20],
    ['backs off after 429', refusal('too many requests', 429), 10, 20],
    ['backs off while the API server is away', new TransportError('connection refused', undefined, true), 10, 20],
    ['continues with the next entry after a rejection for one', refusal('cannot create'), 590, 610],
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
          forRun: async () => {
            tries += 1;
            if (isRefused) throw error;
            return { id: 'JTI=1', token: 't', expiresAtMs: 0 };
          },
        },
        clientWith: () => ({
          client: { ...world.client, mergePatch: () => Promise.reject(noRun()) },
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

  it('waits for an entry, even one that is being deleted', async () => {
    const none = await prove([noRun()], () => []);
    assert.deepEqual([none.proved, none.asked], [false, []]);
    const going = await prove([noRun()], (entry) => [{ ...entry, deleting: true }]);
    assert.deepEqual([going.proved, going.asked.length], [true, 1]);
  });
});
