import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import fastJsonPatch from 'fast-json-patch';
import jsonpatch from 'jsonpatch';
import { applyJsonPatch } from '../../../../src/access/builders/json-patch.ts';
import { deepFreeze } from '../../../support/deep-freeze.ts';
import { runs } from '../../../support/runs.ts';

const resolve = createRequire(import.meta.url).resolve;

interface SuiteCase {
  comment?: string;
  doc: unknown;
  patch?: unknown[];
  expected?: unknown;
  error?: string;
  disabled?: boolean;
}

function suite(file: string): SuiteCase[] {
  const cases: SuiteCase[] = JSON.parse(readFileSync(resolve(`json-patch-test-suite/${file}`), 'utf8'));
  return cases.filter((each) => each.patch && !each.disabled);
}

const template = { metadata: {}, spec: { containers: [{ name: 'app', image: 'a:1' }], replicas: 1 } };

const messageOf = (operations: readonly unknown[], document: unknown = template): string => {
  const patched = applyJsonPatch(document, operations);
  return 'violation' in patched ? patched.violation.message : 'applied';
};

describe('JSON patch', () => {
  for (const file of ['tests.json', 'spec_tests.json']) {
    for (const [index, { comment, doc, patch = [], expected, error }] of suite(file).entries()) {
      it(`passes ${file} ${index} ${comment ?? error ?? ''}`, () => {
        const patched = applyJsonPatch(doc, patch);
        if (error !== undefined) assert.ok('violation' in patched, `must fail: ${error}`);
        else {
          assert.ok('document' in patched, JSON.stringify(patched));
          if (expected !== undefined) assert.deepEqual(patched.document, expected);
        }
      });
    }
  }

  it('needs its own comparison, because `test` of the library accepts unequal objects', () => {
    const operation = { op: 'test', path: '/spec', value: {} };
    assert.doesNotThrow(
      () => jsonpatch.apply_patch(template, [operation]),
      'fixed upstream? then applyTest may use it',
    );
    assert.match(messageOf([operation]), /patchSpecOperations\[0\] \(test "\/spec"\): the value found is not \{\}/);
  });

  for (const [title, operation, expected] of [
    ['an unknown op', { op: 'merge', path: '/spec' }, /\("merge" "\/spec"\): op must be one of add, remove/],
    ['an op from the prototype', { op: 'constructor', path: '/spec' }, /op must be one of/],
    ['no path', { op: 'remove' }, /path must be a JSON Pointer/],
    ['a path without slash', { op: 'remove', path: 'spec' }, /must begin with "\/"/],
    ['a bad escape', { op: 'remove', path: '/spec/a~2b' }, /neither ~0/],
    ['__proto__ in the path', { op: 'add', path: '/__proto__/x', value: 1 }, /must not go through __proto__/],
    ['__proto__ in from', { op: 'copy', from: '/__proto__', path: '/spec/x' }, /from must not go through __proto__/],
    ['no value', { op: 'add', path: '/spec/x' }, /add needs a value; write one, or use kubectl apply --server-side /],
    ['no from', { op: 'move', path: '/spec/x' }, /from must be a JSON Pointer/],
    ['a missing target', { op: 'replace', path: '/spec/containers/3/image', value: 1 }, /list of 1: write the index/],
    [
      'the name of an entry instead of its index',
      { op: 'replace', path: '/spec/containers/app/image', value: 1 },
      /nothing at "\/spec\/containers\/app"; "\/spec\/containers" is a list: write the index 0 instead of the name$/,
    ],
    ['nothing to remove', { op: 'remove', path: '/spec/volumes' }, /nothing at .*; omit the operation, or correct/],
    ['nothing to move', { op: 'move', from: '/spec/volumes', path: '/spec/x' }, /nothing at .*; correct the field/],
    [
      'an annotation of a pod without annotations',
      { op: 'add', path: '/metadata/annotations/owner', value: 'a' },
      /nothing at "\/metadata\/annotations"; set spec\.controllerTargetMutationConfig\.podAnnotations instead, or add \/metadata\/annotations first$/,
    ],
    ['a key with a slash', { op: 'add', path: '/metadata/labels/acme.io/owner', value: 'a' }, /podLabels .* key as ~1/],
    [
      'the path of a workload',
      { op: 'add', path: '/spec/template/spec/containers/0/securityContext', value: {} },
      /nothing at "\/spec\/template"; paths are those of a pod: write "\/spec\/containers\/0\/securityContext"$/,
    ],
    [
      'the path of a workload in the place from which it copies',
      { op: 'copy', from: '/spec/template/metadata/labels/a', path: '/metadata/labels/b' },
      /nothing at "\/spec\/template"; paths are those of a pod: write "\/metadata\/labels\/a"$/,
    ],
    ['an inherited member', { op: 'remove', path: '/spec/toString' }, /nothing at "\/spec\/toString"/],
    ['a parent that is a number', { op: 'add', path: '/spec/replicas/x', value: 1 }, /: "\/spec\/replicas" is neither/],
    ['a place beyond the list', { op: 'add', path: '/spec/containers/2', value: {} }, /"2" is not an index of a list/],
    ['a move into itself', { op: 'move', from: '/spec', path: '/spec/x' }, /: "\/spec" cannot be moved into itself/],
    ['removing everything', { op: 'remove', path: '' }, /whole document/],
  ] as const) {
    it(`rejects ${title} and names the operation`, () => {
      const message = messageOf([{ op: 'test', path: '/spec/replicas', value: 1 }, operation]);
      assert.match(message, /^spec\.controllerTargetMutationConfig\.patchSpecOperations\[1\]/);
      assert.match(message, expected);
    });
  }

  for (const [title, operation, remedy] of [
    ['an index of a list of two', { op: 'remove', path: '/spec/a/2' }, 'is a list of 2: write an index from 0 to 1'],
    ['an index of an empty list', { op: 'test', path: '/spec/b/0', value: 1 }, 'is an empty list: correct the path'],
    ['an entry that is missing', { op: 'replace', path: '/metadata/labels/c', value: 'd' }, 'or write op: add'],
    [
      'a key with a slash in a map that exists',
      { op: 'add', path: '/metadata/labels/acme.io/c', value: 'd' },
      'instead, or write / in a key as ~1, such as /metadata/labels/example.com~1team',
    ],
  ] as const) {
    it(`says what to write for ${title}`, () => {
      const document = { metadata: { labels: { a: 'b' } }, spec: { a: [1, 2], b: [] } };
      const message = messageOf([operation], document);
      assert.ok(message.endsWith(remedy), message);
    });
  }

  for (const [op, end] of [
    ['add', /: correct the path, or add "\/spec\/containers\/0\/securityContext" first$/],
    ['replace', /: correct the path$/],
  ] as const) {
    it(`says what to do for ${op} below a field that the pod lacks`, () => {
      const document = { spec: { containers: [{ name: 'a' }] } };
      const path = '/spec/containers/0/securityContext/privileged';
      assert.match(messageOf([{ op, path, value: 1 }], document), end);
    });
  }

  it('names the field of the API', () => {
    const patched = applyJsonPatch(template, [{ op: 'add', path: '/spec/x' }]);
    assert.ok('violation' in patched);
    assert.equal(patched.violation.code, 'InvalidTemplate');
    assert.equal(patched.violation.field, 'spec.controllerTargetMutationConfig.patchSpecOperations[0].value');
  });

  it('treats constructor and other legal label keys as ordinary names', () => {
    const patched = applyJsonPatch(template, [
      { op: 'add', path: '/metadata/labels', value: {} },
      { op: 'add', path: '/metadata/labels/constructor', value: 'x' },
      { op: 'add', path: '/metadata/labels/example.com~1team', value: 'y' },
    ]);
    assert.deepEqual('document' in patched && patched.document, {
      ...template,
      metadata: { labels: { constructor: 'x', 'example.com/team': 'y' } },
    });
  });

  it('rejects a __proto__ key inside a value', () => {
    const value: unknown = JSON.parse('{"a": [{"__proto__": {"polluted": true}}]}');
    assert.match(messageOf([{ op: 'add', path: '/spec/x', value }]), /value has a field named __proto__/);
  });

  it('rejects copies of copies before they fill the memory', () => {
    const operations = Array.from({ length: 60 }, (_, i) => ({ op: 'copy', from: '/spec', path: `/spec/c${i}` }));
    assert.throws(() => messageOf(operations), /units of work/);
  });

  it('rejects a copy of a value that is nested too deep', () => {
    const operations = Array.from({ length: 80 }, () => ({ op: 'copy', from: '/spec', path: '/spec/c' }));
    assert.match(messageOf(operations), /the value at "\/spec" is nested more than 64 levels deep/);
  });

  it('does not change the document and the operations', () => {
    const value = Object.freeze({ list: Object.freeze([1]) });
    const frozen = deepFreeze(structuredClone(template));
    const patched = applyJsonPatch(frozen, [
      { op: 'add', path: '/spec/x', value },
      { op: 'add', path: '/spec/x/list/-', value: 2 },
      { op: 'remove', path: '/spec/containers/0' },
    ]);
    assert.deepEqual('document' in patched && patched.document, {
      metadata: {},
      spec: { containers: [], replicas: 1, x: { list: [1, 2] } },
    });
  });

  it('agrees with another implementation', () => {
    const token = fc.constantFrom('a', 'b', '0', '1', '2', '-', 'a~1b', '');
    const pointer = fc
      .array(token, { minLength: 1, maxLength: 3 })
      .map((tokens) => tokens.map((each) => `/${each}`).join(''));
    const value = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 2 },
        fc.constantFrom(null, true, 'x', 0, 7),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b', '0', 'a/b', ''), tie('value'), { maxKeys: 3, noNullPrototype: true }),
      ),
    })).value;
    const document = fc.dictionary(fc.constantFrom('a', 'b', '0', 'a/b', ''), value, { noNullPrototype: true });
    const operation = fc.oneof(
      fc.record({ op: fc.constantFrom('add', 'replace', 'test'), path: pointer, value }),
      fc.record({ op: fc.constant('remove'), path: pointer }),
      fc.record({ op: fc.constantFrom('move', 'copy'), path: pointer, from: pointer }),
    );
    let applied = 0;
    fc.assert(
      fc.property(document, fc.array(operation, { minLength: 1, maxLength: 3 }), (document, operations) => {
        const ours = applyJsonPatch(document, operations);
        const theirs = oracle(document, operations);
        if ('document' in ours) {
          applied += 1;
          assert.ok('document' in theirs, `only we apply ${JSON.stringify(operations)}`);
          assert.deepEqual(ours.document, theirs.document);
        } else if (!operations.some(({ op }) => op === 'move' || op === 'copy')) {
          // In the other implementation, move and copy can write beyond the end of a list.
          assert.ok(
            !('document' in theirs),
            `only they apply ${JSON.stringify(operations)}: ${ours.violation.message}`,
          );
        }
      }),
      { seed: 5, numRuns: runs(4000) },
    );
    assert.ok(applied > runs(4000) / 25, `${applied} patches applied`);
  });
});

function oracle(document: unknown, operations: readonly unknown[]): { document: unknown } | { error: unknown } {
  try {
    // Its types know only well-formed patches.
    const patch = structuredClone(operations) as Parameters<typeof fastJsonPatch.applyPatch>[1];
    return { document: fastJsonPatch.applyPatch(structuredClone(document), patch, true).newDocument };
  } catch (error) {
    return { error };
  }
}
