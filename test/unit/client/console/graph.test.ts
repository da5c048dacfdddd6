import assert from 'node:assert/strict';
import { type Component, columnsOf, edgesOf } from '../../../../src/client/console/page/graph.ts';

const outputs = '/status/outputs';
const component = (name: string, reads: readonly string[] = []): Component => ({
  component: name,
  reads: reads.map((path) => `${outputs}/${path}`),
  writes: [`${outputs}/${name}`],
});
const drawn = (...components: Component[]) => {
  const edges = edgesOf(components);
  const columns = [...columnsOf(components, edges)].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    edges: edges.map(({ from, to }) => `${from}>${to}`),
    columns: columns.map(([name, column]) => `${name}:${column}`).join(' '),
  };
};

describe('the graph of components', () => {
  it('leads from a component to those that read a part of what it writes, or more', () => {
    const whole = { component: 'whole', reads: [outputs], writes: [] };
    assert.deepEqual(edgesOf([component('dns', ['network/vnet']), component('network'), whole]), [
      { from: 'dns', to: 'whole' },
      { from: 'network', to: 'dns' },
      { from: 'network', to: 'whole' },
    ]);
  });

  it('is not led astray by names that begin alike, or by a component that reads its own output', () =>
    assert.deepEqual(drawn(component('net'), component('dns', ['network', 'dns'])).edges, []));

  it('has each component right of all that it reads from', () =>
    assert.equal(
      drawn(component('c', ['a', 'b']), component('b', ['a']), component('a'), component('d')).columns,
      'a:0 b:1 c:2 d:0',
    ));

  it('ends for cycles', () => {
    const { edges, columns } = drawn(component('a', ['b']), component('b', ['a']), component('c', ['b', 'c']));
    assert.deepEqual(edges, ['a>b', 'b>a', 'b>c']);
    assert.match(columns, /^a:\d b:\d c:\d$/);
  });

  it('ends soon for many components that all read from each other', () => {
    const names = Array.from({ length: 64 }, (_, index) => `c${index}`);
    const { edges } = drawn(...names.map((name) => component(name, names)));
    assert.equal(edges.length, 64 * 63);
  });
});
