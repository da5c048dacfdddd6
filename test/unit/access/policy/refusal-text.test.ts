import assert from 'node:assert/strict';
import { refusalText, unknownFieldsIn } from '../../../../src/access/policy/refusal-text.ts';

const podOf = (spec?: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'x', namespace: 'payments' },
  spec,
});
const text = (message: string, spec?: object) => refusalText(message, podOf(spec));

describe('why the API server rejects an object of a grant', () => {
  const causes: [title: string, message: string, cause: string, endsWithoutEdit: boolean][] = [
    [
      'omits the name of the pod',
      '422: Pod "template-dry-run-access" is invalid: spec.containers[0].name: Required value',
      'is invalid: spec.containers[0].name: Required value',
      false,
    ],
    [
      'omits how much of a quota is used',
      '403: pods "x" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=2, used: pods=3,requests.cpu=1, limited: pods=3,requests.cpu=2',
      'exceeded quota: q, requested: pods=1,requests.cpu=2, limited: pods=3,requests.cpu=2',
      true,
    ],
    [
      'names the rights that the server lacks, and not the server',
      '403: roles.rbac.authorization.k8s.io "x" is forbidden: user "system:serviceaccount:a:b" (groups=["c"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods/log"], ResourceNames:["x"], Verbs:["get"]}\n{APIGroups:[""], Resources:["pods/exec"], ResourceNames:["x"], Verbs:["create" "get"]}',
      'the server does not hold get of pods/log; create get of pods/exec',
      true,
    ],
    [
      'names the type of a field in the words of JSON',
      '400: Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string',
      'cannot be handled as a Pod: spec.containers.env.value is of type number, not a string',
      false,
    ],
    [
      'keeps the message of a webhook, in one line without control characters',
      '403: admission webhook "w" denied the request:\n\u001b[31mno \u202eshells',
      'admission webhook "w" denied the request: [31mno shells',
      true,
    ],
    ['is at most 512 characters long', `403: ${'x'.repeat(5000)}`, `${'x'.repeat(511)}…`, true],
  ];
  for (const [title, message, cause, endsWithoutEdit] of causes) {
    it(title, () => {
      const found = text(message);
      assert.deepEqual([found.cause, found.endsWithoutEdit], [cause, endsWithoutEdit]);
    });
  }

  const requesterRemedies: [what: string, message: string, remedy: RegExp][] = [
    [
      'to wait, or to ask an administrator, about a quota that is used up',
      '403: pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3',
      /^wait until .* are gone, or ask an administrator to raise the ResourceQuota$/,
    ],
    [
      'to ask the author about a pod that is invalid',
      '422: Pod "x" is invalid: spec.containers[0].name: Required value',
      /^ask the author of the template to correct the field /,
    ],
  ];
  for (const [what, message, remedy] of requesterRemedies)
    it(`tells the requester ${what}`, () => assert.match(text(message).requesterRemedy, remedy));

  describe('if the namespace lacks a label', () => {
    const message =
      '403: pods "x" is forbidden: PodReachesTooFar: the access pod uses namespaces, paths, or ports of its node; that needs the label access.drawbridge.dev/allow-privileged on the Namespace; kubectl debug works with --profile=baseline; an administrator sets it with kubectl label namespace NAMESPACE access.drawbridge.dev/allow-privileged=true';
    const label =
      'ask an administrator to add the label: kubectl label namespace payments access.drawbridge.dev/allow-privileged=true';

    it('names the label once, and then the fields that reach too far', () => {
      const privileged = { name: 'a', securityContext: { privileged: true } };
      const spec = { hostNetwork: true, nodeName: 'n', serviceAccountName: 'web', containers: [privileged] };
      const { cause, remedy } = text(message, spec);
      assert.match(cause, /allow-privileged on the Namespace$/);
      assert.equal(
        remedy,
        `remove spec.hostNetwork and spec.containers[0].securityContext.privileged of the pod (in spec.podSpec or patchSpecOperations) and spec.allowPrivilegedPod of the template, or ${label}`,
      );
    });

    it('names at most three fields', () => {
      const ports = [1, 2, 3, 4].map((hostPort) => ({ hostPort }));
      const spec = { containers: ports.map((port) => ({ ports: [port, port] })) };
      assert.match(
        text(message, spec).remedy,
        /^remove spec\.containers\[0\]\.ports, spec\.containers\[1\]\.ports, spec\.containers\[2\]\.ports, and 1 more of the pod /,
      );
    });

    it('names only the label for a field that a webhook has added', () =>
      assert.equal(text(message, { containers: [{ name: 'a' }] }).remedy, label));
  });

  it('may be unknown fields', () => {
    const prefix = '400: Pod in version "v1" cannot be handled as a Pod: ';
    assert.deepEqual(
      unknownFieldsIn(`${prefix}strict decoding error: unknown field "spec.a", unknown field "spec.b"`),
      ['spec.a', 'spec.b'],
    );
    assert.equal(unknownFieldsIn(`${prefix}json: cannot unmarshal`), undefined);
  });

  for (const part of [', used: ', 'Resources:[', 'Resources:[] ', 'unknown field "', 'x "'])
    it(`is found in a message of 1 MB that repeats ${JSON.stringify(part)}`, () => {
      const hostile = part.repeat(1_000_000 / part.length);
      assert.equal(text(`403: ${hostile}`).cause, `${hostile.trim().slice(0, 511)}…`);
      const rights = `403: is attempting to grant RBAC permissions not currently held ${hostile}`;
      assert.equal(text(rights).cause, 'the server does not hold the rules');
    });
});
