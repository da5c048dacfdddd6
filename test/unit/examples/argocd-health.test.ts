import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lauxlib, lua, lualib, to_luastring } from 'fengari';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '..', '..', '..');
const { data } = parse(readFileSync(join(root, 'examples/argocd/health.yaml'), 'utf8'));
const script: string = parse(data['resource.customizations'])['crds.wizardofoz.co/*']['health.lua'];

/** Runs the script as Argo CD does, with the object in the global `obj`. */
function healthOf(obj: object): [status: string, message: string] {
  const state = lauxlib.luaL_newstate();
  lualib.luaL_openlibs(state);
  push(state, obj);
  lua.lua_setglobal(state, to_luastring('obj'));
  assert.equal(lauxlib.luaL_dostring(state, to_luastring(script)), 0, 'the script runs');
  lua.lua_getfield(state, -1, to_luastring('status'));
  lua.lua_getfield(state, -2, to_luastring('message'));
  return [lua.lua_tojsstring(state, -2), lua.lua_tojsstring(state, -1)];
}

function push(state: object, value: unknown): void {
  if (typeof value === 'string') lua.lua_pushstring(state, to_luastring(value));
  else if (typeof value === 'number') lua.lua_pushnumber(state, value);
  else {
    lua.lua_newtable(state);
    const entries = Array.isArray(value) ? value.map((item, index) => [index + 1, item]) : Object.entries(value ?? {});
    for (const [key, item] of entries) {
      push(state, key);
      push(state, item);
      lua.lua_settable(state, -3);
    }
  }
}

const metadata = { generation: 2 };
const condition = (type: string, status: string, observedGeneration = 2) => ({
  type,
  status,
  message: `about ${type}`,
  observedGeneration,
});
const [ready, unready] = [condition('Ready', 'True'), condition('Ready', 'False')];
const reconciling = condition('Reconciling', 'True');
const at = (...conditions: object[]) => ({ metadata, status: { conditions } });

describe('the health script for Argo CD', () => {
  const cases: [string, object, [string, string]][] = [
    ['there is no status', { metadata }, ['Progressing', 'the server has not reconciled it yet']],
    ['access is open', at(ready), ['Healthy', 'about Ready']],
    [
      'only the spec before was looked at',
      at(condition('Ready', 'True', 1)),
      ['Progressing', 'the server has not reconciled it yet'],
    ],
    ['something is awaited', at(unready, reconciling), ['Progressing', 'about Reconciling']],
    [
      'it waits for approvals',
      at(unready, reconciling, condition('AccessApproved', 'Unknown')),
      ['Suspended', 'about AccessApproved'],
    ],
    ['it was denied', at(unready, condition('Stalled', 'True')), ['Degraded', 'about Stalled']],
    [
      'it is being deleted',
      { ...at(ready), metadata: { ...metadata, deletionTimestamp: 'now' } },
      ['Progressing', 'access is being closed'],
    ],
  ];
  for (const [what, object, expected] of cases) {
    it(`is ${expected[0]} if ${what}`, () => assert.deepEqual(healthOf(object), expected));
  }
});
