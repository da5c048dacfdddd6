import assert from 'node:assert/strict';
import type { KubeObject } from '../../../src/api/object.ts';
import type { OutputForm } from '../../../src/client/common-flags.ts';
import { fields, json, Printer, yaml } from '../../../src/client/output.ts';
import { requestTable } from '../../../src/client/request-table.ts';
import { span, timeFrom } from '../../../src/client/times.ts';

const hostile = 'a\u001b[2J\u009b\u202eb\u2028';
const request = (name: string, spec: object = {}): KubeObject => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name, namespace: 'payments', managedFields: [{ manager: 'kubectl' }] },
  spec: { templateName: 'shell', ...spec },
});
const table = requestTable({ who: false, namespaces: false, now: () => 0 });
const printed = (form: OutputForm, parts: readonly (readonly KubeObject[])[], stream = false): string => {
  let text = '';
  const print = (more: string): void => {
    text += more;
  };
  const printer = new Printer({ print }, form, table, { stream });
  for (const part of parts) printer.add(part);
  printer.end();
  return text;
};

/** The table of these columns on a terminal of this width, without its end. */
const tableOf = (
  columns: (typeof table)['columns'],
  width: number | undefined,
  form: OutputForm = 'table',
  given: { readonly items?: readonly KubeObject[]; readonly blocks?: boolean } = {},
): string => {
  let text = '';
  const print = (more: string): void => {
    text += more;
  };
  const { items = [request('x')], blocks = false } = given;
  new Printer({ print, columns: width }, form, { ...table, columns, blocks }).add(items);
  return text;
};
const linesOf = (...args: Parameters<typeof tableOf>): string[] =>
  tableOf(...args)
    .trimEnd()
    .split('\n');

describe('output of the client', () => {
  it('aligns columns by the first part, and cuts long cells', () => {
    const long = request('b', { templateName: 'b'.repeat(100) });
    const [header = '', first, second] = printed('table', [[request('a'), long], [request('c')]]).split('\n');
    const column = header.indexOf('STATE');
    assert.equal(column, 65);
    assert.equal(first?.slice(column), second?.slice(column));
    assert.equal(second?.slice(column - 51, column - 3), `${'b'.repeat(47)}…`);
  });

  it('aligns the rows of a stream with the longest so far', () => {
    const rows = [request('a'), request('longer', { templateName: 'a-long-template' }), request('c')];
    const [header = '', first = '', second = '', third = ''] = printed(
      'table',
      rows.map((one) => [one]),
      true,
    ).split('\n');
    assert.equal(first.indexOf('Waiting'), header.indexOf('STATE'));
    assert.ok(second.indexOf('Waiting') > header.indexOf('STATE'));
    assert.equal(third.indexOf('Waiting'), second.indexOf('Waiting'));
  });

  it('cuts the last column to the width of a terminal, so that lines do not wrap', () => {
    const one = { title: 'A', text: () => 'a'.repeat(20) };
    const two = { title: 'B', text: () => 'b'.repeat(40) };
    const lengths = [40, 10, undefined].map((width) => linesOf([one, two], width)[1]?.length);
    assert.deepEqual(lengths, [40, 35, 63]);
  });

  it('cuts the widest columns if the lines then fit the terminal, but no column that must be whole', () => {
    const lines = (width: number, name = 20): string[] => {
      const cells = [
        { title: 'NAME', long: true, text: () => 'n'.repeat(name) },
        { title: 'POD', text: () => 'p'.repeat(30) },
        { title: 'WHO', text: () => 'alice' },
        { title: 'WHY', text: () => 'w'.repeat(40) },
      ];
      return linesOf(cells, width);
    };
    const cut = ['n'.repeat(20), `${'p'.repeat(20)}…`, 'alice', `${'w'.repeat(11)}…`];
    assert.deepEqual(lines(67)[1]?.split(/ +/), cut);
    assert.equal(lines(67)[1]?.length, 67);
    assert.equal(lines(67)[0]?.indexOf('WHO'), lines(67)[1]?.indexOf('alice'));
    assert.match(lines(200)[1] ?? '', / p{30} /);
    // Lines that would wrap anyway stay as they are.
    assert.match(lines(67, 40)[1] ?? '', / p{30} /);
  });

  it('wraps a last column that must be whole at words, below its title', () => {
    const lines = (width: number | undefined, form: OutputForm = 'table', who = 'alice'): string[] => {
      const cells = [
        { title: 'WHO', text: () => who },
        {
          title: 'WHAT',
          long: true,
          text: () => 'can grant itself anything (ClusterRoleBinding a-name-of-forty-characters-for-this-test)',
        },
      ];
      return linesOf(cells, width, form);
    };
    assert.deepEqual(lines(40), [
      'WHO     WHAT',
      'alice   can grant itself anything',
      '        (ClusterRoleBinding',
      '        a-name-of-forty-characters-for-this-test)',
    ]);
    for (const more of [lines(200), lines(undefined), lines(40, 'wide')]) assert.equal(more.length, 2);
    // With a narrow last column, the others are cut.
    assert.match(lines(40, 'table', 'w'.repeat(30))[1] ?? '', /^w+… {3}can grant itself$/);
    // Lines that would wrap anyway stay as they are.
    assert.equal(lines(20).length, 2);
  });

  it('prints a block for each item if a table asks for it and no line fits the terminal', () => {
    const cells = [
      { title: 'GRANTED', long: true, text: () => '2026-11-21T09:00:00Z' },
      { title: 'WHO', text: ({ metadata }: KubeObject) => metadata.name },
      { title: 'END', text: () => '' },
      { title: 'WHY', text: () => 'w'.repeat(60) },
    ];
    const items = [request('alice'), request('b\u001b[2J\nb')];
    const text = (width: number, form?: OutputForm): string => tableOf(cells, width, form, { items, blocks: true });
    const block = (who: string): string =>
      `GRANTED: 2026-11-21T09:00:00Z\nWHO:     ${who}\nWHY:     ${'w'.repeat(60)}\n\n`;
    assert.equal(text(40), block('alice') + block('b?[2J?b'));
    for (const table of [text(80), text(40, 'wide')]) assert.match(table, /^GRANTED +WHO +END +WHY\n/);
  });

  it('prints control and invisible characters of objects in no form', () => {
    const one = request(hostile, { reason: hostile, templateName: hostile });
    for (const form of ['table', 'wide', 'json', 'yaml', 'name'] as const) {
      for (const stream of [false, true])
        assert.doesNotMatch(printed(form, [[one]], stream), /[^\P{Cc}\n]|[\p{Cf}\p{Zl}]/u, form);
    }
    assert.doesNotMatch(fields([['Reason', [hostile, `${hostile}\nsecond`]]]), /[^\P{Cc}\n]|[\p{Cf}\p{Zl}]/u);
  });

  it('escapes them so that JSON and YAML keep the value', () => {
    assert.deepEqual(JSON.parse(json({ text: hostile, more: '\u{e0001}' })), { text: hostile, more: '\u{e0001}' });
    assert.deepEqual(JSON.parse(yaml({ text: '\u202e' })), { text: '\u202e' });
    assert.equal(yaml({ a: ['b'] }), 'a:\n  - b\n');
  });

  it('is one List, or one object a line of a watch, without managedFields', () => {
    const list = JSON.parse(printed('json', [[request('a')], [request('b')]]));
    assert.deepEqual([list.kind, list.items.length, list.items[0].metadata.managedFields], ['List', 2, undefined]);
    const lines = printed('json', [[request('a')], [request('b')]], true)
      .trimEnd()
      .split('\n');
    assert.deepEqual(
      lines.map((line) => JSON.parse(line).metadata.name),
      ['a', 'b'],
    );
    assert.equal(printed('name', [[request('a')]]), 'podaccessrequest.crds.wizardofoz.co/a\n');
  });

  const spans: readonly (readonly [ms: number, text: string])[] = [
    [-5, '0s'],
    [999, '0s'],
    [59_999, '59s'],
    [60_000, '1m'],
    [3_599_999, '59m59s'],
    [3_600_000, '1h'],
    [5_400_000, '1h30m'],
    [90_061_000, '1d1h'],
  ];
  for (const [ms, text] of spans) it(`shows ${ms} ms as ${text}`, () => assert.equal(span(ms), text));

  it('shows a time and its distance', () => {
    assert.equal(timeFrom(60_000, 0), '1970-01-01T00:01:00Z (in 1m)');
    assert.equal(timeFrom(0, 60_000), '1970-01-01T00:00:00Z (1m ago)');
  });
});
