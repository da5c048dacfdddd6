import assert from 'node:assert/strict';
import { type Component, graphOf } from '../../../../src/client/console/page/graph.ts';

const component = (name: string, ...reads: readonly string[]): Component => ({
  reads: reads.map((path) => `/status/outputs/${path}` as const),
  writes: [`/status/outputs/${name}`],
});
const edges = (...components: Component[]): string[] =>
  graphOf(components).edges.map(({ from, to }) => `${from}>${to}`);
const places = (...components: Component[]): string[] =>
  graphOf(components).places.map(({ column, row }) => `${column},${row}`);

describe('the graph of components', () => {
  it('leads from a component to those that read a part of what it writes, or more', () => {
    const whole: Component = { reads: ['/status/outputs'], writes: [] };
    assert.deepEqual(edges(component('dns', 'network/vnet'), component('network'), whole), ['0>2', '1>0', '1>2']);
  });

  it('is not led astray by names that begin alike, or by a component that reads its own output', () =>
    assert.deepEqual(edges(component('net'), component('dns', 'network', 'dns')), []));

  it('has each component right of all that it reads from', () =>
    assert.deepEqual(places(component('c', 'a', 'b'), component('b', 'a'), component('a'), component('d')), [
      '2,0',
      '1,0',
      '0,0',
      '0,1',
    ]));

  it('ends for cycles', () => {
    const cycle = [component('a', 'b'), component('b', 'a'), component('c', 'b', 'c')];
    assert.deepEqual(edges(...cycle), ['0>1', '1>0', '1>2']);
    assert.equal(new Set(places(...cycle)).size, 3);
  });

  it('ends soon for many components that all read from each other', () => {
    const names = Array.from({ length: 64 }, (_, index) => `c${index}`);
    assert.equal(edges(...names.map((name) => component(name, ...names))).length, 64 * 63);
  });
});
