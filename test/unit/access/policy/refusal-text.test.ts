import assert from 'node:assert/strict';
import { refusalText, unknownFieldsIn } from '../../../../src/access/policy/refusal-text.ts';

const text = (message: string) => refusalText(message, 'payments');

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

  it('is followed by a remedy with the command for the namespace', () => {
    const message = 'PodReachesTooFar: … needs the label access.drawbridge.dev/allow-privileged on the Namespace';
    assert.match(
      text(message).remedy,
      /kubectl label namespace payments access\.drawbridge\.dev\/allow-privileged=true$/,
    );
  });

  it('may be unknown fields', () => {
    const prefix = '400: Pod in version "v1" cannot be handled as a Pod: ';
    assert.deepEqual(
      unknownFieldsIn(`${prefix}strict decoding error: unknown field "spec.a", unknown field "spec.b"`),
      ['spec.a', 'spec.b'],
    );
    assert.equal(unknownFieldsIn(`${prefix}json: cannot unmarshal`), undefined);
  });

  it('is found in linear time in hostile messages', () => {
    for (const part of [', used: ', 'Resources:[', 'unknown field "', 'x "', '\n '])
      text(`403: is attempting to grant RBAC permissions not currently held ${part.repeat(20_000)}`);
  });
});
