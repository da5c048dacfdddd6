import assert from 'node:assert/strict';
import type { AccessKind } from '../../../../src/access/access-kind.ts';
import { Cut, isCertified } from '../../../../src/access/policies/cut.ts';
import { policiesMissing } from '../../../../src/access/policies/policy-check.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { accessVotes } from '../../../../src/api/access/access-vote.ts';
import { accesses } from '../../../../src/api/access/kinds.ts';
import { requestLabel } from '../../../../src/api/access/names.ts';
import type { KubeObject, ObjectName, Resource } from '../../../../src/api/object.ts';
import { roleBindings, roles } from '../../../../src/api/resources.ts';
import type { AuditRecord } from '../../../../src/audit/record.ts';
import type { Client } from '../../../../src/kube/client.ts';
import { ApiError } from '../../../../src/kube/errors.ts';

const [access] = accesses;
const created = { namespace: 'shop', resourceVersion: '1', creationTimestamp: '2026-11-21T09:00:00Z' };
const requestOf = (name: string, status: object = {}): KubeObject =>
  ({
    apiVersion: 'crds.wizardofoz.co/v1alpha1',
    kind: 'PodAccessRequest',
    metadata: { name, uid: `uid-${name}`, ...created },
    spec: { templateName: 'shell' },
    status,
  }) as KubeObject;
const grant = {
  template: { kind: 'PodAccessTemplate', name: 'shell', uid: 't', generation: 1 },
  subjects: [{ kind: 'User', name: 'alice' }],
  pod: { name: 'p' },
  rules: [],
  planHash: 'h',
  expiresAt: '2026-11-21T10:00:00Z',
};
const child = (kind: string, name: string, uid: string): KubeObject =>
  ({ kind, metadata: { name, uid, ...created, labels: { [requestLabel]: 'uid-open' } } }) as unknown as KubeObject;
const author = { username: 'erin', uid: '', groups: [], time: '2026-11-21T09:00:00Z' };
const templateOf = (name: string, spec: object, reason?: string, observedGeneration = 2): KubeObject => {
  const lastTransitionTime = '2026-11-21T09:00:00Z';
  const condition = {
    type: 'AuthorHoldsRights',
    status: 'True',
    reason,
    message: '',
    lastTransitionTime,
    observedGeneration,
  };
  return {
    apiVersion: 'crds.wizardofoz.co/v1alpha1',
    kind: 'PodAccessTemplate',
    metadata: { name, uid: `uid-${name}`, generation: 2, ...created },
    spec: { accessConfig: { allowedGroups: ['devs'] }, podSpec: { containers: [{ name: 'a', image: 'a' }] }, ...spec },
    status: reason === undefined ? {} : { conditions: [condition] },
  } as unknown as KubeObject;
};
const voteOf = (name: string, about: string, decision: string, uid = 'uid-open'): KubeObject =>
  ({
    apiVersion: 'access.drawbridge.dev/v1alpha1',
    kind: 'AccessVote',
    metadata: { name, uid: `uid-${name}`, ...created, labels: { [requestLabel]: uid } },
    spec: {
      request: { kind: 'PodAccessRequest', name: 'open', uid },
      template: { kind: 'PodAccessTemplate', name: 'shell', uid: 't', generation: 1 },
      about,
      decision,
      voter: author,
    },
  }) as unknown as KubeObject;

/** What the cut did, as lines. */
async function cutOf(
  objects: ReadonlyMap<Resource, KubeObject[]>,
  { isInstallation = false, conflicts = 0 } = {},
): Promise<string[]> {
  const done: string[] = [];
  let left = conflicts;
  const lines: AuditRecord[] = [];
  const client = {
    list: async (resource: Resource) => ({ items: objects.get(resource) ?? [] }),
    get: async (resource: Resource, { name }: ObjectName) =>
      objects.get(resource)?.find(({ metadata }) => metadata.name === name) ??
      Promise.reject(new ApiError(404, 'NotFound', 'gone')),
    delete: async ({ kind }: Resource, { name }: ObjectName) => void done.push(`delete ${kind} ${name}`),
  } as unknown as Client;
  const act =
    (what: string) =>
    async (view: { readonly name: string }): Promise<void> => {
      if (left-- > 0) throw new ApiError(409, 'Conflict', 'changed');
      done.push(`${what} ${view.name}`);
    };
  const kind = {
    requestKind: access.request.resource.kind,
    requestResource: access.request.resource,
    templateKind: access.template.resource.kind,
    templateResource: access.template.resource,
  } as unknown as AccessKind;
  const cut = new Cut({
    client,
    kinds: [
      {
        kind,
        deny: act('deny'),
        denyGranted: act('end'),
        refuseExtensions: act('refuse extensions of'),
        rejectTemplate: act('reject'),
      },
    ],
    reviews: { of: (uid) => (uid === 'uid-owed' ? ({} as never) : undefined) },
    journal: { available: true, append: async (line) => void lines.push(line) },
  });
  await cut.run(policiesMissing('x'), isInstallation, new AbortController().signal);
  assert.equal(lines.length, done.filter((line) => line.includes('AccessVote')).length);
  return done.sort();
}

describe('the cut after a gap', () => {
  const open = requestOf('open', { grant, children: [{ kind: 'RoleBinding', name: 'b', uid: 'b-1' }] });

  it('denies what has no grant, ends what is not open, and refuses extensions of the rest', async () => {
    const requests = [
      requestOf('new'),
      requestOf('unopened', { grant }),
      requestOf('lost', { grant, children: [{ kind: 'RoleBinding', name: 'c', uid: 'gone' }] }),
      requestOf('over', {
        ended: { at: '2026-11-21T09:30:00Z', until: '2026-11-22T09:30:00Z', how: 'Expired', reason: 'Expired' },
      }),
      open,
    ];
    const objects = new Map([
      [access.request.resource, requests],
      [roleBindings, [child('RoleBinding', 'b', 'b-1')]],
    ]);
    const expected = ['deny new', 'end lost', 'end unopened', 'refuse extensions of open'];
    assert.deepEqual(await cutOf(objects), expected);
    assert.deepEqual(await cutOf(objects, { conflicts: 2 }), expected);
  });

  it('deletes labelled objects that no open request lists', async () => {
    const objects = new Map([
      [access.request.resource, [open]],
      [roleBindings, [child('RoleBinding', 'b', 'b-1'), child('RoleBinding', 'other', 'b-2')]],
      [roles, [child('Role', 'planted', 'r-1')]],
    ]);
    assert.deepEqual(await cutOf(objects), [
      'delete Role planted',
      'delete RoleBinding other',
      'refuse extensions of open',
    ]);
  });

  it('deletes approvals of extensions, and votes that would settle a review, but no denial', async () => {
    const votes = [
      voteOf('approval', 'Access', 'Approve'),
      voteOf('extension', 'Extension-1', 'Approve'),
      voteOf('refusal', 'Extension-1', 'Deny'),
      voteOf('review', 'Review', 'Approve', 'uid-owed'),
      voteOf('settled', 'Review', 'Approve'),
    ];
    assert.deepEqual(await cutOf(new Map([[accessVotes, votes]])), [
      'delete AccessVote extension',
      'delete AccessVote review',
    ]);
  });

  const templates = [
    templateOf('known', { author }, 'Success'),
    templateOf('lacking', { author }, 'AuthorLacksRights'),
    templateOf('edited', { author }, 'Success', 1),
    templateOf('unseen', { author }),
    templateOf('privileged', { author, allowPrivilegedPod: true }, 'Success'),
    templateOf('authorless', {}),
  ];

  it('rejects templates whose author the server did not find before, and those that hand out privilege', async () => {
    const objects = new Map([[access.template.resource, templates]]);
    assert.deepEqual(await cutOf(objects), [
      'reject authorless',
      'reject edited',
      'reject privileged',
      'reject unseen',
    ]);
  });

  it('leaves templates without an author to trustExistingTemplates after an installation', async () => {
    const objects = new Map([[access.template.resource, templates]]);
    const expected = ['reject edited', 'reject privileged', 'reject unseen'];
    assert.deepEqual(await cutOf(objects, { isInstallation: true }), expected);
  });

  it('does not spare a version that an earlier cut rejected', () => {
    const view = (reason: string) =>
      ({
        generation: 2,
        conditions: [{ type: 'AuthorHoldsRights', observedGeneration: 2, reason }],
      }) as unknown as TemplateView;
    assert.deepEqual(
      ['Success', 'AuthorLacksRights', 'PoliciesMissing', 'AuthorUnknown'].map((reason) => isCertified(view(reason))),
      [true, true, false, false],
    );
  });
});
