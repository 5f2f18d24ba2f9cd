"""Pure functions from evidence to expectation, in rooms: `change > signs > picture > measure | roofline | trace`.

measure    what a run says was measured: windows, levels, the law, the GPU's use
roofline   from a model, a GPU and a layout to the least and the typical time
trace      from the columns of a trace to its summary
picture    the waist: everything that is computed from one run before any rule looks at it
signs      what a picture says of one cause, one question a file
change     what a change would bring, and what it brought
"""
