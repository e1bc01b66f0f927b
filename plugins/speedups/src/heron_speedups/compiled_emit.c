/* The emit of a stream in C, for the calls that nearly all programs make. `compiled_emit.pyi` says what each argument is.

   The generated emit of the core stays the truth. This one looks whether a call is usual, and only then appends. It
   passes every other call on before it has changed anything, so errors, odd arguments and first keys are those of Python.

   Code of an author may run while a call is looked at: the hash and the comparison of a key, an attribute of an anchor.
   Therefore each object that is used afterwards is owned meanwhile. Nothing of an author runs between the appends. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#define CONTRACT 1
#define MOST_EDGES 8

enum { EXTRA_ALWAYS, EXTRA_UNLESS_NONE, EXTRA_ANCHOR };

typedef struct {
    PyObject *positions; /* a tuple of ints */
    PyObject *known;     /* a dict: key to pick */
    PyObject *picks;     /* a list, or NULL */
} Edge;

typedef struct {
    PyObject_HEAD
    PyObject *generated;
    PyObject *stream;
    PyObject *overflow;
    PyObject *rows;
    PyObject *extra_name;
    PyObject *extras; /* a list, or NULL */
    PyObject *absent;
    Py_ssize_t arity;
    Py_ssize_t edge_count;
    int kind;
    Edge edges[MOST_EDGES];
} Emit;

static PyObject *name_of_limit, *name_of_index, *name_of_tup_id;

/* Looks at the arguments: 1 and the extra one, which may be NULL; 0 if the call is not usual. */
static int
usual_arguments(Emit *self, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **extra)
{
    *extra = NULL;
    if (names != NULL && PyTuple_Size(names) > 0) {
        if (count != 1 || PyTuple_Size(names) != 1 || PyTuple_GetItem(names, 0) != self->extra_name)
            return 0;
        *extra = args[1];
    }
    else if (count == 2 && self->extra_name == name_of_tup_id)
        *extra = args[1];
    else if (count != 1)
        return 0;
    if (*extra == Py_None)
        *extra = NULL;
    return 1;
}

/* A new reference to the row of these values; NULL without an exception if they are not usual. */
static PyObject *
row_of(Emit *self, PyObject *values)
{
    if (PyTuple_CheckExact(values) && PyTuple_Size(values) == self->arity)
        return Py_NewRef(self->arity == 1 ? PyTuple_GetItem(values, 0) : values);
    if (PyList_CheckExact(values) && PyList_Size(values) == self->arity)
        return self->arity == 1 ? Py_NewRef(PyList_GetItem(values, 0)) : PyList_AsTuple(values);
    return NULL;
}

/* A new reference to the pick of a row's key; NULL if the key is new, or cannot be a key. */
static PyObject *
pick_of(Emit *self, Edge *edge, PyObject *row)
{
    Py_ssize_t fields = PyTuple_Size(edge->positions);
    PyObject *key;
    if (self->arity == 1)
        key = Py_NewRef(row);
    else if (fields == 1)
        key = Py_NewRef(PyTuple_GetItem(row, PyLong_AsSsize_t(PyTuple_GetItem(edge->positions, 0))));
    else {
        if ((key = PyTuple_New(fields)) == NULL)
            return NULL;
        for (Py_ssize_t i = 0; i < fields; i++) {
            Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(edge->positions, i));
            PyTuple_SetItem(key, i, Py_NewRef(PyTuple_GetItem(row, position)));
        }
    }
    PyObject *pick = PyDict_GetItemWithError(edge->known, key);
    Py_XINCREF(pick);
    Py_DECREF(key);
    return pick;
}

/* A new reference to the only anchor; NULL if there are others, or if it is a copy or no tuple. */
static PyObject *
anchor_of(PyObject *anchors)
{
    PyObject *anchor;
    if (PyList_CheckExact(anchors) && PyList_Size(anchors) == 1)
        anchor = Py_NewRef(PyList_GetItem(anchors, 0));
    else if (PyTuple_CheckExact(anchors) && PyTuple_Size(anchors) == 1)
        anchor = Py_NewRef(PyTuple_GetItem(anchors, 0));
    else
        return NULL;
    PyObject *index = PyObject_GetAttr(anchor, name_of_index);
    if (index != NULL && PyLong_CheckExact(index) && PyLong_AsLong(index) >= 0) {
        Py_DECREF(index);
        return anchor;
    }
    Py_XDECREF(index);
    Py_DECREF(anchor);
    return NULL;
}

/* Appends what belongs to one row, the row last: a flush takes as many entries of the other lists as there are rows. */
static int
append(Emit *self, PyObject *row, PyObject *const *picks, PyObject *extra)
{
    for (Py_ssize_t i = 0; i < self->edge_count; i++)
        if (self->edges[i].picks != NULL && PyList_Append(self->edges[i].picks, picks[i]) < 0)
            return -1;
    if (self->extras != NULL && self->kind != EXTRA_UNLESS_NONE &&
        PyList_Append(self->extras, extra != NULL ? extra : self->absent) < 0)
        return -1;
    return PyList_Append(self->rows, row);
}

/* Flushes if the buffer is full. */
static int
flush_if_full(Emit *self, PyObject *values)
{
    PyObject *limit = PyObject_GetAttr(self->stream, name_of_limit);
    if (limit == NULL)
        return -1;
    Py_ssize_t most = PyLong_AsSsize_t(limit);
    Py_DECREF(limit);
    if (most == -1 && PyErr_Occurred())
        return -1;
    if (PyList_Size(self->rows) < most)
        return 0;
    PyObject *done = PyObject_CallFunctionObjArgs(self->overflow, values, NULL);
    if (done == NULL)
        return -1;
    Py_DECREF(done);
    return 0;
}

/* Emits a row whose picks and extra argument, which may be NULL, are found. */
static int
emit_row(Emit *self, PyObject *values, PyObject *row, PyObject *const *picks, PyObject *extra)
{
    if (append(self, row, picks, extra) < 0 || flush_if_full(self, values) < 0)
        return -1;
    /* behind the flush, which refuses some values: their id is not acked */
    if (self->extras != NULL && self->kind == EXTRA_UNLESS_NONE && extra != NULL)
        return PyList_Append(self->extras, extra);
    return 0;
}

/* 1: emitted; 0: the call is not usual, and nothing has changed; -1: an exception. */
static int
emitted(Emit *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *given, *extra = NULL, *row, *picks[MOST_EDGES];
    Py_ssize_t found = 0;
    int done = 0;
    if (!usual_arguments(self, args, count, names, &given))
        return 0;
    if ((row = row_of(self, args[0])) == NULL)
        return PyErr_Occurred() ? -1 : 0;
    for (; found < self->edge_count; found++)
        if ((picks[found] = pick_of(self, &self->edges[found], row)) == NULL)
            break;
    if (found == self->edge_count) {
        if (given != NULL)
            extra = self->extras != NULL && self->kind == EXTRA_ANCHOR ? anchor_of(given) : Py_NewRef(given);
        if (given == NULL || extra != NULL)
            done = emit_row(self, args[0], row, picks, extra) < 0 ? -1 : 1;
    }
    if (done == 0 && PyErr_Occurred()) { /* of a key or an anchor */
        if (PyErr_ExceptionMatches(PyExc_Exception))
            PyErr_Clear(); /* the generated emit says it in its own words */
        else
            done = -1; /* a stop that was asked for once must not be lost */
    }
    Py_XDECREF(extra);
    while (found > 0)
        Py_DECREF(picks[--found]);
    Py_DECREF(row);
    return done;
}

static PyObject *
pass_on(Emit *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *positional = PyTuple_New(count), *named = NULL, *result = NULL;
    if (positional == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SetItem(positional, i, Py_NewRef(args[i]));
    if (names != NULL) {
        if ((named = PyDict_New()) == NULL)
            goto end;
        for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++)
            if (PyDict_SetItem(named, PyTuple_GetItem(names, i), args[count + i]) < 0)
                goto end;
    }
    result = PyObject_Call(self->generated, positional, named);
end:
    Py_DECREF(positional);
    Py_XDECREF(named);
    return result;
}

static PyObject *
emit(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    switch (emitted((Emit *)self, args, count, names)) {
    case 1:
        Py_RETURN_NONE;
    case 0:
        return pass_on((Emit *)self, args, count, names);
    default:
        return NULL;
    }
}

static PyMethodDef emit_method = {"emit", (PyCFunction)(void (*)(void))emit, METH_FASTCALL | METH_KEYWORDS, NULL};

static int
emit_traverse(PyObject *object, visitproc visit, void *arg)
{
    Emit *self = (Emit *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->generated);
    Py_VISIT(self->stream);
    Py_VISIT(self->overflow);
    Py_VISIT(self->rows);
    Py_VISIT(self->extra_name);
    Py_VISIT(self->extras);
    Py_VISIT(self->absent);
    for (Py_ssize_t i = 0; i < self->edge_count; i++) {
        Py_VISIT(self->edges[i].positions);
        Py_VISIT(self->edges[i].known);
        Py_VISIT(self->edges[i].picks);
    }
    return 0;
}

static void
emit_dealloc(PyObject *object)
{
    Emit *self = (Emit *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->generated);
    Py_XDECREF(self->stream);
    Py_XDECREF(self->overflow);
    Py_XDECREF(self->rows);
    Py_XDECREF(self->extra_name);
    Py_XDECREF(self->extras);
    Py_XDECREF(self->absent);
    for (Py_ssize_t i = 0; i < self->edge_count; i++) {
        Py_XDECREF(self->edges[i].positions);
        Py_XDECREF(self->edges[i].known);
        Py_XDECREF(self->edges[i].picks);
    }
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyType_Slot emit_slots[] = {
    {Py_tp_traverse, emit_traverse},
    {Py_tp_dealloc, emit_dealloc},
    {0, NULL},
};

static PyType_Spec emit_spec = {
    .name = "heron_speedups.compiled_emit.Emit",
    .basicsize = sizeof(Emit),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = emit_slots,
};

static PyTypeObject *emit_type;

static int
take_edges(Emit *self, PyObject *edges)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(edges); i++) {
        PyObject *positions, *known, *picks;
        if (i == MOST_EDGES || !PyArg_ParseTuple(PyTuple_GetItem(edges, i), "O!O!O", &PyTuple_Type, &positions,
                                                 &PyDict_Type, &known, &picks))
            return -1;
        for (Py_ssize_t each = 0; each < PyTuple_Size(positions); each++) {
            Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GetItem(positions, each));
            if (position < 0 || position >= self->arity)
                return -1;
        }
        if (PyTuple_Size(positions) == 0 || (picks != Py_None && !PyList_CheckExact(picks)))
            return -1;
        Edge *edge = &self->edges[self->edge_count++];
        edge->positions = Py_NewRef(positions);
        edge->known = Py_NewRef(known);
        edge->picks = picks == Py_None ? NULL : Py_NewRef(picks);
    }
    return 0;
}

static PyObject *
make(PyObject *module, PyObject *args)
{
    PyObject *generated, *stream, *overflow, *rows, *edges, *extra_name, *extras, *absent, *result = NULL;
    Py_ssize_t arity;
    int kind;
    if (!PyArg_ParseTuple(args, "OOOO!nO!UOiO", &generated, &stream, &overflow, &PyList_Type, &rows, &arity,
                          &PyTuple_Type, &edges, &extra_name, &extras, &kind, &absent))
        return NULL;
    Emit *self = PyObject_GC_New(Emit, emit_type);
    if (self == NULL)
        return NULL;
    self->generated = Py_NewRef(generated);
    self->stream = Py_NewRef(stream);
    self->overflow = Py_NewRef(overflow);
    self->rows = Py_NewRef(rows);
    self->extra_name = Py_NewRef(extra_name);
    PyUnicode_InternInPlace(&self->extra_name); /* as the names of arguments are: compared by identity */
    self->extras = extras == Py_None ? NULL : Py_NewRef(extras);
    self->absent = Py_NewRef(absent);
    self->arity = arity;
    self->kind = kind;
    self->edge_count = 0;
    if (take_edges(self, edges) == 0 && kind >= EXTRA_ALWAYS && kind <= EXTRA_ANCHOR &&
        (self->extras == NULL || PyList_CheckExact(extras)))
        result = PyCFunction_NewEx(&emit_method, (PyObject *)self, NULL);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "make: edges, extras or kind are not as compiled_emit.pyi says");
    PyObject_GC_Track((PyObject *)self);
    Py_DECREF(self);
    return result;
}

static PyMethodDef methods[] = {
    {"make", make, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heron_speedups.compiled_emit",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit_compiled_emit(void)
{
    name_of_limit = PyUnicode_InternFromString("limit");
    name_of_index = PyUnicode_InternFromString("_index");
    name_of_tup_id = PyUnicode_InternFromString("tup_id");
    emit_type = (PyTypeObject *)PyType_FromSpec(&emit_spec);
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || !name_of_limit || !name_of_index || !name_of_tup_id || emit_type == NULL ||
        PyModule_AddIntConstant(module, "CONTRACT", CONTRACT) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
