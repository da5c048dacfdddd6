import assert from 'node:assert/strict';
import type { Permission } from '../../../../src/access/policy/template-permissions.ts';
import type { Signer } from '../../../../src/access/signing/signer.ts';
import type { TemplateView } from '../../../../src/access/stores/access-views.ts';
import { type AuthorPermissions, TemplateAuthors } from '../../../../src/access/template/template-authors.ts';
import type { AuthorAttestation, TemplateVersion } from '../../../../src/api/access/template-spec.ts';
import { signerOf } from '../../../support/signers.ts';

const kind = 'PodAccessTemplate';
const author = { username: 'erin', uid: '', groups: ['owners'], time: '2026-11-21T09:00:00Z' };
const createdAtMs = Date.parse('2026-11-21T09:00:01Z');
const { signal } = new AbortController();

describe('the verified author of a template', () => {
  const signer = signerOf('ours');
  const attestationOf = (version: TemplateVersion, over: Partial<AuthorAttestation> = {}): AuthorAttestation => ({
    kind,
    namespace: 'payments',
    name: 'shell',
    version,
    author,
    ...over,
  });
  /** A new template, as the webhook signs it. */
  const first: TemplateVersion = { spec: { accessConfig: {}, author: 'whatever' } };
  const generation = (number: number): TemplateVersion => ({ uid: 't-1', generation: number });

  const view = (signature: string | undefined, over: Partial<TemplateView> = {}, spec: object = {}) =>
    ({
      namespace: 'payments',
      name: 'shell',
      uid: 't-1',
      generation: 1,
      createdAtMs,
      authorSignature: undefined,
      spec: { accessConfig: {}, ...spec, ...(signature === undefined ? {} : { author: { ...author, signature } }) },
      ...over,
    }) as TemplateView;

  const violationOf = (
    template: TemplateView,
    {
      lacks = [],
      trustExisting = false,
      by = signer,
    }: { lacks?: Permission[]; trustExisting?: boolean; by?: Signer } = {},
  ) => {
    const rights = { missing: () => Promise.resolve(lacks) } as Partial<AuthorPermissions> as AuthorPermissions;
    const authors = new TemplateAuthors({ kind, signer: by, permissions: rights, trustExisting });
    return authors.violation(template, 60_000, signal);
  };
  const codeOf = async (...given: Parameters<typeof violationOf>): Promise<string> =>
    (await violationOf(...given))?.code ?? 'none';
  const sign = (attestation: AuthorAttestation, by = signer): string => by.signAuthor(attestation) ?? '';

  it('is its creator while the spec is unchanged', async () =>
    assert.equal(await codeOf(view(sign(attestationOf(first)))), 'none'));

  it('is the user who changed it last', async () =>
    assert.equal(await codeOf(view(sign(attestationOf(generation(5))), { generation: 5 })), 'none'));

  it('may be verified with a key that was rotated since', async () => {
    const signature = sign(attestationOf(first), signerOf('an old key'));
    assert.equal(await codeOf(view(signature)), 'AuthorUnknown');
    assert.equal(await codeOf(view(signature, { authorSignature: sign(attestationOf(generation(1))) })), 'none');
  });

  it('stays its creator if a newer CRD adds a default to the spec, once the author was verified', async () => {
    const grown = { grown: true };
    assert.equal(await codeOf(view(sign(attestationOf(first)), {}, grown)), 'AuthorUnknown');
    const proven = { authorSignature: sign(attestationOf(generation(1))) };
    assert.equal(await codeOf(view(sign(attestationOf(first)), proven, grown)), 'none');
  });

  const forged: [string, TemplateView][] = [
    ['no author', view(undefined)],
    ['no signature', view('')],
    ['a signature by another key', view(sign(attestationOf(first), signerOf('theirs')))],
    [
      'the attestation of a new template with another spec',
      view(sign(attestationOf(first)), {}, { allowPrivilegedPod: true }),
    ],
    ['the attestation of a new template, later changed', view(sign(attestationOf(first)), { generation: 2 })],
    ['the attestation of another generation', view(sign(attestationOf(generation(3))), { generation: 2 })],
    ['the attestation of a later generation', view(sign(attestationOf(generation(2))), { generation: 1 })],
    ['the attestation of another template', view(sign(attestationOf(first)), { name: 'other' })],
    ['the attestation of another namespace', view(sign(attestationOf(first)), { namespace: 'other' })],
    [
      'the attestation of another template of this name',
      view(sign(attestationOf(generation(5))), { generation: 5, uid: 't-2' }),
    ],
    ['the attestation of an earlier template', view(sign(attestationOf(first)), { createdAtMs: createdAtMs + 10_000 })],
    ['a attestation from after its creation', view(sign(attestationOf(first)), { createdAtMs: createdAtMs - 4000 })],
    ['another author', view(sign(attestationOf(first, { author: { ...author, username: 'admin' } })))],
    ['another status', view('', { authorSignature: sign(attestationOf(generation(1)), signerOf('theirs')) })],
    ['the status of another template', view('', { authorSignature: sign(attestationOf(generation(1))), uid: 't-2' })],
  ];
  for (const [title, template] of forged) {
    it(`is unknown with ${title}`, async () => assert.equal(await codeOf(template), 'AuthorUnknown'));
  }

  it('may lack the permissions that the template grants', async () => {
    const lacks: Permission[] = [{ verb: 'create', group: '', resource: 'pods', subresource: 'exec' }];
    assert.equal(await codeOf(view(sign(attestationOf(first))), { lacks }), 'AuthorLacksRights');
  });

  it('changes by a command that both codes have, because applying the manifest again changes nothing', async () => {
    const lacks: Permission[] = [{ verb: 'create', group: '', resource: 'pods', subresource: 'exec' }];
    for (const violation of [
      await violationOf(view(sign(attestationOf(first))), { lacks }),
      await violationOf(view(undefined)),
    ]) {
      assert.match(violation?.message ?? '', /-n \w+ --type=merge -p '\{"spec":\{"author":\{"username":"me"\}\}\}'$/);
    }
  });

  it('is not required for templates without an author, if those are trusted', async () => {
    assert.equal(await codeOf(view(undefined), { trustExisting: true }), 'none');
    assert.equal(await codeOf(view(''), { trustExisting: true }), 'AuthorUnknown');
    const flagged = view(undefined, {}, { allowPrivilegedPod: true });
    assert.equal(await codeOf(flagged, { trustExisting: true }), 'AuthorUnknown');
  });
});
