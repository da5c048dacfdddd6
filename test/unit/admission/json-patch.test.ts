import assert from 'node:assert/strict';
import fc from 'fast-check';
import fastJsonPatch, { type Operation } from 'fast-json-patch';
import { type FieldPath, PatchBuilder } from '../../../src/admission/json-patch.ts';

const apply = (document: unknown, patch: PatchBuilder): unknown =>
  fastJsonPatch.applyPatch(structuredClone(document), structuredClone(patch.ops) as Operation[], true).newDocument;

describe('the patch builder', () => {
  it('creates missing parents, each once', () => {
    const patch = new PatchBuilder({}).set(['a', 'b', 'c'], 1).set(['a', 'b', 'd'], 2);
    assert.deepEqual(patch.ops, [
      { op: 'add', path: '/a', value: {} },
      { op: 'add', path: '/a/b', value: {} },
      { op: 'add', path: '/a/b/c', value: 1 },
      { op: 'add', path: '/a/b/d', value: 2 },
    ]);
  });

  it('treats a null parent as missing, as Kubernetes does', () => {
    assert.deepEqual(apply({ metadata: null }, new PatchBuilder({ metadata: null }).set(['metadata', 'name'], 'x')), {
      metadata: { name: 'x' },
    });
  });

  it('escapes tokens', () => {
    const patch = new PatchBuilder({ metadata: { annotations: {} } }).set(['metadata', 'annotations', 'a/b~c'], 'x');
    assert.deepEqual(patch.ops, [{ op: 'add', path: '/metadata/annotations/a~1b~0c', value: 'x' }]);
  });

  it('removes only values that exist', () => {
    assert.deepEqual(new PatchBuilder({ a: {} }).remove(['a', 'b']).ops, []);
    assert.deepEqual(new PatchBuilder({ a: { b: 1 } }).remove(['a', 'b']).ops, [{ op: 'remove', path: '/a/b' }]);
  });

  it('sees the results of earlier calls', () => {
    const document = { kept: 1, parent: { child: 1 } };
    const cases: [title: string, patch: PatchBuilder, expected: unknown][] = [
      ['removes what was set', new PatchBuilder(document).set(['new', 'field'], 1).remove(['new']), document],
      ['removes once', new PatchBuilder(document).remove(['parent']).remove(['parent', 'child']), { kept: 1 }],
      [
        'creates a removed parent again',
        new PatchBuilder(document).remove(['parent']).set(['parent', 'other'], 2),
        { kept: 1, parent: { other: 2 } },
      ],
    ];
    for (const [title, patch, expected] of cases) assert.deepEqual(apply(document, patch), expected, title);
    assert.deepEqual(document, { kept: 1, parent: { child: 1 } });
    assert.throws(() => new PatchBuilder({}).set(['a'], 1).set(['a', 'b'], 1), { code: 'UnpatchablePath' });
  });

  for (const token of ['__proto__', 'constructor', 'prototype']) {
    it(`rejects ${token} in a path`, () => {
      assert.throws(() => new PatchBuilder({}).set(['metadata', token], 1), { code: 'UnpatchablePath' });
      assert.throws(() => new PatchBuilder({}).remove([token]), { code: 'UnpatchablePath' });
    });
  }

  it('rejects a path through a scalar or a list', () => {
    for (const metadata of ['text', 7, true, []]) {
      assert.throws(() => new PatchBuilder({ metadata }).set(['metadata', 'name'], 1), { code: 'UnpatchablePath' });
    }
  });

  it('returns a patch that sets exactly the value and nothing else', () => {
    const token = fc
      .oneof(fc.constantFrom('a', 'b', 'a/b', '~', '~1', ''), fc.string({ maxLength: 3 }))
      .filter((text) => !['__proto__', 'constructor', 'prototype'].includes(text));
    const document = fc.letrec((tie) => ({
      node: fc.dictionary(token, fc.oneof({ maxDepth: 3 }, fc.constant(null), tie('node')), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
    })).node;
    const path = fc.array(token, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(document, path, fc.jsonValue(), (before, tokens, value) => {
        const after = apply(before, new PatchBuilder(before).set(tokens as unknown as FieldPath, value));
        let found: unknown = after;
        for (const step of tokens) found = (found as Record<string, unknown>)[step];
        assert.deepEqual(found, JSON.parse(JSON.stringify(value)));
      }),
      { seed: 11, numRuns: 300 },
    );
  });
});
