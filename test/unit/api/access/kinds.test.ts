import assert from 'node:assert/strict';
import fc from 'fast-check';
import { execAccess } from '../../../../src/api/access/exec-access.ts';
import { readGrant } from '../../../../src/api/access/grant.ts';
import { accessKinds } from '../../../../src/api/access/kinds.ts';
import { podAccess } from '../../../../src/api/access/pod-access.ts';
import { readObject } from '../../../../src/api/schema/kind.ts';
import type { Read } from '../../../../src/api/schema/read.ts';
import {
  execRequestManifest,
  execTemplateManifest,
  grantOf,
  podRequestManifest,
  podTemplateManifest,
} from '../../../support/access-objects.ts';

const readPodAccessTemplate = (object: unknown) => readObject(podAccess.template, object);
const readExecAccessTemplate = (object: unknown) => readObject(execAccess.template, object);
const readPodAccessRequest = (object: unknown) => readObject(podAccess.request, object);
const readExecAccessRequest = (object: unknown) => readObject(execAccess.request, object);

const readers = [readPodAccessTemplate, readExecAccessTemplate, readPodAccessRequest, readExecAccessRequest] as const;

function accepted<T>(result: Read<T>): T {
  assert.ok(result.ok, JSON.stringify(result));
  return result.value;
}

function refusedFields(result: Read<unknown>): string[] {
  return result.ok ? [] : result.errors.map(({ field }) => field);
}

describe('the readers of the access kinds', () => {
  it('set the defaults of accessConfig', () => {
    assert.deepEqual(accepted(readExecAccessTemplate(execTemplateManifest())).spec.accessConfig, {
      allowedGroups: ['devs'],
      defaultDuration: '1h',
      maxDuration: '24h',
      accessCommand: 'kubectl exec -ti -n {{ .Metadata.Namespace }} {{ .Metadata.Name }} -- /bin/sh',
      grantTo: 'Requester',
    });
  });

  it('set the defaults of controllerTargetMutationConfig', () => {
    const { spec } = accepted(readPodAccessTemplate(podTemplateManifest({ controllerTargetMutationConfig: {} })));
    assert.deepEqual(spec.controllerTargetMutationConfig, {
      purgeAnnotations: false,
      keepTerminationGracePeriod: false,
      keepLivenessProbe: false,
      keepReadinessProbe: false,
      keepServiceAccount: false,
      keepStartupProbe: false,
      keepTopologySpreadConstraints: false,
    });
  });

  it('set requester fields that an authenticator omits', () => {
    const requester = { username: 'alice', time: '2026-11-21T09:00:00Z' };
    const { spec } = accepted(readPodAccessRequest(podRequestManifest({ requester })));
    assert.deepEqual(spec.requester, { ...requester, uid: '', groups: [] });
  });

  it('keep a podSpec and the values of a JSON patch unchanged', () => {
    const podSpec = { containers: [{ name: 'a', image: 'b', future: { field: [null] } }] };
    const patchSpecOperations = [null, 1, 'x', [1], { a: null }].map((value) => ({
      op: 'add',
      path: '/spec/x',
      value,
    }));
    const { spec } = accepted(
      readPodAccessTemplate(podTemplateManifest({ podSpec, controllerTargetMutationConfig: { patchSpecOperations } })),
    );
    assert.deepEqual(spec.podSpec, podSpec);
    assert.deepEqual(spec.controllerTargetMutationConfig?.patchSpecOperations, patchSpecOperations);
  });

  it('read a duration that CEL rejects, so that the server can report it', () => {
    const accessConfig = { allowedGroups: ['devs'], maxDuration: '1 day' };
    const { spec } = accepted(readPodAccessTemplate(podTemplateManifest({ accessConfig })));
    assert.equal(spec.accessConfig.maxDuration, '1 day');
    assert.equal(accepted(readPodAccessRequest(podRequestManifest({ duration: 'soon' }))).spec.duration, 'soon');
  });

  it('omit managedFields, and read a name that is not generated yet as empty', () => {
    const metadata = { generateName: 'debug-', namespace: 'payments', managedFields: [{}], labels: { a: 'b' } };
    const request = accepted(readPodAccessRequest({ ...podRequestManifest(), metadata }));
    assert.deepEqual(request.metadata, { name: '', generateName: 'debug-', namespace: 'payments', labels: { a: 'b' } });
  });

  it('say which version and kind they need, and what they found', () => {
    const result = readPodAccessRequest({ ...execRequestManifest(), apiVersion: 'v1' });
    assert.deepEqual(result.ok ? [] : result.errors.map(({ field, message }) => `${field} ${message}`), [
      'apiVersion must be "crds.wizardofoz.co/v1alpha1"; found "v1"',
      'kind must be "PodAccessRequest"; found "ExecAccessRequest"',
    ]);
  });

  const cronJob = { apiVersion: 'apps/v1', kind: 'CronJob', name: 'x' };
  const merging = { patchSpecOperations: [{ op: 'merge', path: '/spec' }] };
  const refused: [title: string, result: Read<unknown>, field: string][] = [
    ['a missing spec', readPodAccessRequest({ ...podRequestManifest(), spec: null }), 'spec'],
    ['an empty template name', readPodAccessRequest(podRequestManifest({ templateName: '' })), 'spec.templateName'],
    [
      'a template without groups',
      readExecAccessTemplate(execTemplateManifest({ accessConfig: {} })),
      'spec.accessConfig.allowedGroups',
    ],
    [
      'a target of another kind',
      readExecAccessTemplate(execTemplateManifest({ controllerTargetRef: cronJob })),
      'spec.controllerTargetRef.kind',
    ],
    ['a negative quantity', readPodAccessTemplate(podTemplateManifest({ maxCpu: '-1' })), 'spec.maxCpu'],
    [
      'an unknown patch operation',
      readPodAccessTemplate(podTemplateManifest({ controllerTargetMutationConfig: merging })),
      'spec.controllerTargetMutationConfig.patchSpecOperations[0].op',
    ],
  ];
  for (const [title, result, field] of refused) {
    it(`reject ${title}`, () => assert.deepEqual(refusedFields(result), [field]));
  }

  it('reject any invalid input without throwing', () => {
    fc.assert(
      fc.property(fc.anything(), (object) => readers.every((reader) => !reader(object).ok)),
      { seed: 20261121, numRuns: 300 },
    );
  });

  it('survive any value in any field of a valid object', () => {
    const paths = fc.constantFrom('templateName', 'duration', 'requester', 'targetPod');
    fc.assert(
      fc.property(paths, fc.anything(), (field, value) => {
        const result = readExecAccessRequest(execRequestManifest({ [field]: value }));
        if (!result.ok) assert.ok(result.errors.every((error) => error.field.startsWith(`spec.${field}`)));
      }),
      { seed: 20261121, numRuns: 500 },
    );
  });
});

describe('readGrant', () => {
  it('reads the grant of a request whose other fields are invalid', () => {
    const request = { metadata: 7, spec: [], status: { conditions: 'none', grant: grantOf() } };
    assert.deepEqual(accepted(readGrant(request)), grantOf());
  });

  it('keeps the uid of a pinned pod', () => {
    const pod = { name: 'payments-0', uid: 'p-1' };
    assert.deepEqual(accepted(readGrant({ status: { grant: grantOf({ pod }) } })).pod, pod);
  });

  const serviceAccount = { kind: 'ServiceAccount', name: 'x' };
  const refused: [title: string, status: unknown, field: string][] = [
    ['no grant', {}, 'status.grant'],
    ['no status', undefined, 'status.grant'],
    ['an unreadable deadline', { grant: grantOf({ expiresAt: 'never' }) }, 'status.grant.expiresAt'],
    ['nobody', { grant: grantOf({ subjects: [] }) }, 'status.grant.subjects'],
    ['a ServiceAccount', { grant: grantOf({ subjects: [serviceAccount] }) }, 'status.grant.subjects[0].kind'],
  ];
  for (const [title, status, field] of refused) {
    it(`rejects ${title}`, () => assert.deepEqual(refusedFields(readGrant({ status })), [field]));
  }
});

describe('the access kinds', () => {
  it('are the four of the API group, namespaced and at v1alpha1', () => {
    assert.deepEqual(
      accessKinds.map(({ resource }) => `${resource.group}/${resource.version} ${resource.plural} ${resource.kind}`),
      [
        'crds.wizardofoz.co/v1alpha1 podaccesstemplates PodAccessTemplate',
        'crds.wizardofoz.co/v1alpha1 podaccessrequests PodAccessRequest',
        'crds.wizardofoz.co/v1alpha1 execaccesstemplates ExecAccessTemplate',
        'crds.wizardofoz.co/v1alpha1 execaccessrequests ExecAccessRequest',
      ],
    );
    assert.ok(accessKinds.every(({ resource }) => resource.namespaced));
  });
});
