/** The functions of Lua's C API that the test calls; the package has no types. */
declare module 'fengari' {
  type State = object;
  type Text = Uint8Array;
  export function to_luastring(text: string): Text;
  export const lauxlib: {
    luaL_newstate(): State;
    luaL_dostring(state: State, script: Text): number;
  };
  export const lualib: { luaL_openlibs(state: State): void };
  export const lua: {
    lua_pushstring(state: State, text: Text): void;
    lua_pushnumber(state: State, value: number): void;
    lua_newtable(state: State): void;
    lua_settable(state: State, index: number): void;
    lua_setglobal(state: State, name: Text): void;
    lua_getfield(state: State, index: number, name: Text): void;
    lua_tojsstring(state: State, index: number): string;
  };
}
