# Part of _gather.pyx: the members of a message, read from where its class keeps them.
#
# `Message` has slots: each member is one pointer at a place that its class knows.  Looking ten names up is a good part of
# what a message costs; so the places are asked for once.

cdef extern from *:
    """
    #include <structmember.h>

    static Py_ssize_t bolide_place_of_slot(PyObject *descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_SetString(PyExc_TypeError, "the members of a message have no slots");
            return -1;
        }
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    """
    Py_ssize_t place_of_slot "bolide_place_of_slot"(object descriptor) except -1

cdef Py_ssize_t TOPIC_AT = place_of_slot(Message.topic)
cdef Py_ssize_t BODY_AT = place_of_slot(Message.body)
cdef Py_ssize_t TAGS_AT = place_of_slot(Message.tags)
cdef Py_ssize_t KEYS_AT = place_of_slot(Message.keys)
cdef Py_ssize_t PROPERTIES_AT = place_of_slot(Message.properties)
cdef Py_ssize_t FLAG_AT = place_of_slot(Message.flag)
cdef Py_ssize_t DELAY_LEVEL_AT = place_of_slot(Message.delay_level)
cdef Py_ssize_t DELIVER_AT_AT = place_of_slot(Message.deliver_at)
cdef Py_ssize_t DELAY_AT = place_of_slot(Message.delay)
cdef Py_ssize_t SHARDING_KEY_AT = place_of_slot(Message.sharding_key)


cdef inline object read(message, Py_ssize_t place):
    """Of a message, and of nothing else."""
    cdef PyObject* found = (<PyObject**>(<char*><PyObject*>message + place))[0]
    if found == NULL:
        raise AttributeError("a member of the message was deleted")
    return <object>found
