import assert from 'node:assert/strict';
import { planHashAnnotation, requestLabel } from '../../../src/api/access/names.ts';
import type { KubeObject } from '../../../src/api/object.ts';
import { pods, roleBindings, roles } from '../../../src/api/resources.ts';
import type { Client } from '../../../src/kube/client.ts';
import { ApiError, TransportError } from '../../../src/kube/errors.ts';
import { Applier } from '../../../src/rbac/applier.ts';

const { signal } = new AbortController();
const name = { namespace: 'payments', name: 'debug-1a2b3c4d-access' };
const provenance = { ownerUid: 'r-1', planHash: 'c0ffee' };

const object = (uid: string, ownerUid = 'r-1', planHash = 'c0ffee', controller = true): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: {
    ...name,
    uid,
    labels: { [requestLabel]: ownerUid },
    annotations: { [planHashAnnotation]: planHash },
    ownerReferences: [{ apiVersion: 'v1', kind: 'R', name: 'debug', uid: ownerUid, controller }],
  },
});
const withoutLabels = ({ metadata: { labels: _, ...metadata }, ...rest }: KubeObject): KubeObject => ({
  ...rest,
  metadata,
});
const answer = (code: number, reason: string): ApiError => new ApiError(code, reason, `answer ${code}`);

/** An applier with one or no object under the name. */
function applierOver(held: KubeObject | undefined, create: () => Promise<KubeObject> = () => Promise.reject()) {
  const calls: string[] = [];
  const client: Pick<Client, 'create' | 'get' | 'delete'> = {
    create: () => {
      calls.push('create');
      return create();
    },
    get: () => {
      calls.push('get');
      return held ? Promise.resolve(held) : Promise.reject(answer(404, 'NotFound'));
    },
    delete: (_resource, _name, options) => {
      calls.push(`delete ${options?.uid}`);
      if (!held) return Promise.resolve('absent');
      return held.metadata.uid === options?.uid ? Promise.resolve('deleted') : Promise.reject(answer(409, 'Conflict'));
    },
  };
  return { applier: new Applier(client as Client), calls };
}

describe('the applier', () => {
  describe('creating', () => {
    const taken = (): Promise<KubeObject> => Promise.reject(answer(409, 'AlreadyExists'));
    const outcomes: [string, KubeObject, string][] = [
      ['its object of an earlier attempt', object('b-1'), 'adopted'],
      ['one of another request', object('b-1', 'r-2'), 'collision'],
      ['its object of another plan', object('b-1', 'r-1', 'beef'), 'collision'],
      ['one that names us as owner, but not as controller', object('b-1', 'r-1', 'c0ffee', false), 'collision'],
      ['a lookalike without our label, which no admission policy restricts', withoutLabels(object('b-1')), 'collision'],
    ];
    for (const [what, held, expected] of outcomes) {
      it(`finds ${what}: ${expected}`, async () => {
        const { applier } = applierOver(held, taken);
        assert.equal((await applier.create(roleBindings, object(''), provenance, signal)).kind, expected);
      });
    }

    for (const code of [400, 403, 404, 405, 413, 422]) {
      it(`treats the answer ${code} as permanent`, async () => {
        const { applier } = applierOver(undefined, () => Promise.reject(answer(code, '')));
        assert.equal((await applier.create(roleBindings, object(''), provenance, signal)).kind, 'refused');
      });
    }

    for (const error of [
      answer(500, ''),
      answer(429, 'TooManyRequests'),
      new TransportError('cut', undefined, false),
    ]) {
      it(`treats ${error.message} as temporary`, async () => {
        const { applier } = applierOver(undefined, () => Promise.reject(error));
        await assert.rejects(applier.create(roleBindings, object(''), provenance, signal), error);
      });
    }
  });

  describe('deleting', () => {
    const known = { uid: 'b-1', ownerUid: 'r-1' };
    const unknown = { ownerUid: 'r-1' };
    const rows: [string, KubeObject | undefined, { uid?: string; ownerUid: string }, boolean, string[]][] = [
      ['an object with a known uid needs one call', object('b-1'), known, true, ['delete b-1']],
      ['a missing object needs one call', undefined, known, false, ['delete b-1']],
      ['an object whose uid is not known is read first', object('b-1'), unknown, true, ['get', 'delete b-1']],
      ['a missing object needs no delete', undefined, unknown, false, ['get']],
      ['a foreign object stays', object('b-9', 'r-2'), unknown, false, ['get']],
      ['a foreign object of the same name stays', object('b-9', 'r-2'), known, false, ['delete b-1', 'get']],
      ['an own object with a wrong uid is deleted', object('b-9'), known, true, ['delete b-1', 'get', 'delete b-9']],
    ];
    for (const [what, held, owner, expected, expectedCalls] of rows) {
      it(what, async () => {
        const { applier, calls } = applierOver(held);
        assert.equal(await applier.delete(roleBindings, name, owner, signal), expected);
        assert.deepEqual(calls, expectedCalls);
      });
    }

    it('gives a Pod a grace period of one second, which differs from the Pod’s own', async () => {
      const deleteOptions: unknown[] = [];
      const client: Pick<Client, 'delete'> = {
        delete: (_resource, _name, { signal: _, ...options } = {}) => {
          deleteOptions.push(options);
          return Promise.resolve('deleted');
        },
      };
      await new Applier(client as Client).delete(pods, name, known, signal);
      assert.deepEqual(deleteOptions, [{ uid: 'b-1', gracePeriodSeconds: 1, propagation: 'Background' }]);
    });

    describe('an object with finalizers', () => {
      const held = (subjects?: readonly object[]): KubeObject => {
        const { metadata, ...rest } = object('b-1');
        return { ...rest, metadata: { ...metadata, finalizers: ['a.b/c'] }, ...(subjects ? { subjects } : {}) };
      };
      const alice = [{ kind: 'User', name: 'alice' }];
      const deleted = async (found: KubeObject, resource = roleBindings, fails?: ApiError) => {
        const patches: unknown[] = [];
        const client: Pick<Client, 'delete' | 'jsonPatch'> = {
          delete: () => Promise.resolve({ held: found }),
          jsonPatch: (_resource, _name, ops) => {
            patches.push(ops);
            return fails ? Promise.reject(fails) : Promise.resolve(found);
          },
        };
        const existed = await new Applier(client as Client).delete(resource, name, known, signal);
        return { existed, patches };
      };
      const emptied = [
        { op: 'test', path: '/metadata/uid', value: 'b-1' },
        { op: 'remove', path: '/subjects' },
      ];

      it('loses its subjects if it is a RoleBinding', async () => {
        assert.deepEqual(await deleted(held(alice)), { existed: true, patches: [emptied] });
      });

      for (const subjects of [undefined, []]) {
        it(`is already closed if it is a RoleBinding with ${subjects ? 'an empty list of' : 'no'} subjects`, async () => {
          assert.deepEqual(await deleted(held(subjects)), { existed: false, patches: [] });
        });
      }

      it('is not changed if it has no subjects', async () => {
        for (const resource of [roles, pods]) {
          assert.deepEqual(await deleted(held(), resource), { existed: true, patches: [] });
        }
      });

      it('counts as closed if it, or its Role, is gone before that', async () => {
        const { existed } = await deleted(held(alice), roleBindings, answer(404, 'NotFound'));
        assert.equal(existed, true);
      });

      for (const error of [answer(403, 'Forbidden'), answer(409, 'Conflict'), answer(422, 'Invalid')]) {
        it(`does not count as closed on ${error.message}`, () =>
          assert.rejects(deleted(held(alice), roleBindings, error), error));
      }
    });

    it('does not treat a conflict about an own object as its deletion', async () => {
      const conflict = answer(409, 'Conflict');
      const client: Pick<Client, 'get' | 'delete'> = {
        get: () => Promise.resolve(object('b-1')),
        delete: () => Promise.reject(conflict),
      };
      await assert.rejects(new Applier(client as Client).delete(roleBindings, name, known, signal), conflict);
    });
  });
});
