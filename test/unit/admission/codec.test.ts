import assert from 'node:assert/strict';
import { decodeReview, encodeAnswer } from '../../../src/admission/codec.ts';
import { alice, reviewOf } from './support.ts';

const review = (request: unknown, changes: Record<string, unknown> = {}): unknown => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request,
  ...changes,
});
const create = (changes: Record<string, unknown> = {}): unknown =>
  review({ ...reviewOf('podaccessrequests', 'CREATE'), ...changes });

describe('the AdmissionReview codec', () => {
  it('reads what kube-apiserver sends', () => {
    const extra = { 'example.com/scope': ['a', 'b'] };
    const decoded = decodeReview(create({ userInfo: { ...alice, extra }, object: { a: 1 }, dryRun: true }));
    assert.equal(decoded.operation, 'CREATE');
    assert.deepEqual(decoded.user, { ...alice, extra });
    assert.deepEqual(decoded.object, { a: 1 });
    assert.equal(decoded.oldObject, undefined);
    assert.equal(decoded.dryRun, true);
    assert.equal(decoded.subResource, '');
  });

  it('reads absent optional fields as empty', () => {
    const decoded = decodeReview(create({ name: undefined, namespace: null, userInfo: {}, dryRun: undefined }));
    assert.equal(decoded.name, '');
    assert.equal(decoded.namespace, '');
    assert.deepEqual(decoded.user, { username: '', uid: '', groups: [], extra: {} });
    assert.equal(decoded.dryRun, false);
  });

  const refused: [string, unknown, RegExp][] = [
    ['null', null, /apiVersion must be "admission.k8s.io\/v1"; found nothing/],
    ['a list', [], /apiVersion must be/],
    ['an older version', review({}, { apiVersion: 'admission.k8s.io/v1beta1' }), /found "admission.k8s.io\/v1beta1"/],
    ['another kind', review({}, { kind: 'ConversionReview' }), /must be "AdmissionReview"; found "Conver/],
    ['no request', review(undefined), /request must be an object; found nothing/],
    ['a list as request', review([]), /request must be an object; found a list/],
    ['no uid', create({ uid: '' }), /request.uid is missing/],
    ['a uid of 65 characters', create({ uid: 'u'.repeat(65) }), /uid has 65 characters; at most 64/],
    ['a number as uid', create({ uid: 7 }), /request.uid must be a string; found 7/],
    ['an unknown operation', create({ operation: 'PATCH' }), /one of CREATE, UPDATE, DELETE, CONNECT; found "PATCH"/],
    ['no userInfo', create({ userInfo: null }), /request.userInfo must be an object; found null/],
    ['groups that are no strings', create({ userInfo: { ...alice, groups: ['a', 1] } }), /groups must be a list/],
    ['extra that is no map of lists', create({ userInfo: { ...alice, extra: { a: 'b' } } }), /extra.a must be a list/],
    ['dryRun as text', create({ dryRun: 'true' }), /request.dryRun must be true or false; found "true"/],
    ['no resource', create({ resource: undefined }), /request.resource must be an object; found nothing/],
  ];
  for (const [title, body, message] of refused) {
    it(`rejects ${title}, and names the found and the allowed value`, () => {
      assert.throws(() => decodeReview(body), { code: 'InvalidReview', message });
    });
  }

  it('reads only own properties', () => {
    const inherited = Object.create({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' });
    assert.throws(() => decodeReview(inherited), { code: 'InvalidReview' });
  });

  it('omits unset fields from the answer', () => {
    const answer = JSON.parse(JSON.stringify(encodeAnswer('u', { allowed: true, patch: [], warnings: [] })));
    assert.deepEqual(answer, {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u', allowed: true },
    });
  });

  describe('warnings', () => {
    const sent = (warnings: readonly string[]): readonly string[] =>
      JSON.parse(JSON.stringify(encodeAnswer('u', { allowed: true, warnings }))).response.warnings;
    const long = `${'x'.repeat(3000)}; correct the name`;

    it('stay whole up to 4,096 characters together, because the API server cuts none', () => {
      const warnings = [long, 'y'.repeat(4096 - long.length)];
      assert.deepEqual(sent(warnings), warnings);
    });

    it('above that, are cut to 256 characters, and keep what to do', () => {
      const [first = '', second, ...rest] = sent([long, `${long} `, 'short']);
      assert.match(first, /^x+ \.\.\. x+; correct the name$/);
      assert.deepEqual([first.length, second?.length, rest], [256, 256, ['short']]);
    });

    it('are never more than the API server passes on; the last one counts the others', () => {
      for (const length of [40, 300]) {
        const all = Array.from({ length: 200 }, (_, index) => `${index} ${'x'.repeat(length)}`);
        const kept = sent(all);
        assert.equal(kept.at(-1), `more warnings: ${all.length - kept.length + 1}`);
        const total = kept.join('').length;
        assert.ok(total <= 4096 && total > 4096 - 2 * 256, `${total} characters`);
      }
    });
  });
});
